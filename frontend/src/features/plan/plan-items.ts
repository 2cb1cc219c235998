/** Plan steps as a list of items with their state. Pure. */

export interface PlanItem {
  seq: number;
  /** Steps from this plan up to the next. */
  steps: number;
  state: "done" | "now";
}

/** `plans`: sequence numbers of plan steps, oldest first. `last`: the run's last step. */
export function planItems(plans: readonly number[], last: number, active: boolean): PlanItem[] {
  return plans.map((seq, at) => {
    const next = plans[at + 1];
    return {
      seq,
      steps: (next ?? last + 1) - seq,
      state: next !== undefined || !active ? "done" : "now",
    };
  });
}
