/** Plan steps as a list of items with their state. Pure. */

export interface PlanItem {
  seq: number;
  /** Number of steps from this plan up to the next one. */
  steps: number;
  state: "done" | "now";
}

/**
 * Build the items. `plans` are the sequence numbers of the plan steps, oldest first; `last` is the last step of the
 * run.
 */
export function buildPlanItems(plans: readonly number[], last: number, active: boolean): PlanItem[] {
  return plans.map((seq, at) => {
    const next = plans[at + 1];
    return {
      seq,
      steps: (next ?? last + 1) - seq,
      state: next !== undefined || !active ? "done" : "now",
    };
  });
}
