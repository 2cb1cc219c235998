/**
 * The context of an agent that edits it, computed from the steps of the run: its records and the status of each. Pure.
 * Payloads are read defensively: a field without the expected type is shown as empty.
 */

import type { StepWithPayload } from "@/shared/api/step-payloads";

export type RecordStatus = "live" | "pruned" | "discarded" | "summarized";

export interface ContextRecord {
  /** Id that the agent uses for the record. */
  id: string;
  turn: number;
  seq: number;
  /** Action of the agent. */
  action: string;
  /** Result of the action. */
  observation: string;
  /** Note by the agent. Empty if there is none. */
  note: string;
  status: RecordStatus;
  /** Turn in which the record left the context. `null` means that it is still there. */
  removedInTurn: number | null;
}

/** Return the records after turn `turn`, oldest first. */
export function recordsAfterTurn(steps: readonly StepWithPayload[], turn: number): ContextRecord[] {
  const records = new Map<string, ContextRecord>();
  for (const step of steps) {
    if (step.turn < 1 || step.turn > turn) continue;
    if (step.kind === "role_call") applyRoleCall(records, step);
    if (step.kind === "tool_result") addObservation(records, step);
    if (step.kind === "memory") applyMemoryStep(records, step);
  }
  return [...records.values()];
}

export function lastTurn(steps: readonly StepWithPayload[]): number {
  return steps.reduce((last, step) => Math.max(last, step.turn), 0);
}

function applyRoleCall(records: Map<string, ContextRecord>, step: StepWithPayload): void {
  const output = objectOrEmpty(step.payload.output);
  if (stringOrEmpty(output.summary)) {
    markRemoved(records, [...records.keys()], "summarized", step.turn);
    addRecord(records, step, "summary", stringOrEmpty(output.summary));
    return;
  }
  addRecord(records, step, `r${step.turn}`, "");
}

function addRecord(records: Map<string, ContextRecord>, step: StepWithPayload, id: string, note: string): void {
  const name = id === "summary" ? `summary ${step.turn}` : id;
  records.set(name, {
    id: name,
    turn: step.turn,
    seq: step.seq,
    action: step.title,
    observation: "",
    note,
    status: "live",
    removedInTurn: null,
  });
}

/** Add the result of a tool call to its record. A record of several calls shows all of their results. */
function addObservation(records: Map<string, ContextRecord>, step: StepWithPayload): void {
  const record = records.get(`r${step.turn}`);
  if (record) record.observation = [record.observation, step.title, step.detail].filter(Boolean).join(" · ");
}

function applyMemoryStep(records: Map<string, ContextRecord>, step: StepWithPayload): void {
  const { op, id, deleted, note, said } = step.payload;
  if (op === "discard") {
    markRemoved(records, [stringOrEmpty(id)], "discarded", step.turn);
    return;
  }
  markRemoved(records, Array.isArray(deleted) ? deleted.map(String) : [], "pruned", step.turn);
  const record = records.get(stringOrEmpty(id));
  if (!record) return;
  record.note = stringOrEmpty(note);
  record.observation = stringOrEmpty(said);
}

function markRemoved(
  records: Map<string, ContextRecord>,
  ids: readonly string[],
  status: RecordStatus,
  turn: number,
): void {
  for (const id of ids) {
    const record = records.get(id);
    if (record && record.status === "live") Object.assign(record, { status, removedInTurn: turn });
  }
}

function objectOrEmpty(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function stringOrEmpty(value: unknown): string {
  return typeof value === "string" ? value : "";
}
