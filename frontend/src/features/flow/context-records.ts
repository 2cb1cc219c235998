/**
 * The context of an agent that edits it, folded from the run's steps: which records it held, and what became of each.
 *
 * Pure. Reads payloads as data: what does not have the expected form is shown as far as it goes.
 */

import type { WholeStep } from "@/shared/api/flow";

export type Fate = "live" | "pruned" | "discarded" | "summed up";

export interface ContextRecord {
  /** The agent's own name for it. */
  id: string;
  turn: number;
  seq: number;
  /** What it did. */
  action: string;
  /** What came of it. */
  observation: string;
  /** A note that it wrote. Empty: none. */
  note: string;
  fate: Fate;
  /** Turn in which it left the context. null: it is there. */
  until: number | null;
}

/** The records after turn `turn`, oldest first. */
export function contextAt(steps: readonly WholeStep[], turn: number): ContextRecord[] {
  const records = new Map<string, ContextRecord>();
  for (const step of steps) {
    if (step.turn < 1 || step.turn > turn) continue;
    if (step.kind === "turn") act(records, step);
    if (step.kind === "tool") observe(records, step);
    if (step.kind === "memory") edit(records, step);
  }
  return [...records.values()];
}

export function lastTurn(steps: readonly WholeStep[]): number {
  return steps.reduce((most, step) => Math.max(most, step.turn), 0);
}

function act(records: Map<string, ContextRecord>, step: WholeStep): void {
  const output = fields(step.payload.output);
  if (text(output.summary)) {
    leave(records, [...records.keys()], "summed up", step.turn);
    put(records, step, "summary", text(output.summary));
    return;
  }
  put(records, step, `r${step.turn}`, "");
}

function put(records: Map<string, ContextRecord>, step: WholeStep, id: string, note: string): void {
  const name = id === "summary" ? `summary ${step.turn}` : id;
  records.set(name, {
    id: name,
    turn: step.turn,
    seq: step.seq,
    action: step.title,
    observation: "",
    note,
    fate: "live",
    until: null,
  });
}

function observe(records: Map<string, ContextRecord>, step: WholeStep): void {
  const record = records.get(`r${step.turn}`);
  if (record) record.observation = [step.title, step.detail].filter(Boolean).join(" · ");
}

function edit(records: Map<string, ContextRecord>, step: WholeStep): void {
  const { op, id, deleted, note, said } = step.payload;
  if (op === "discard") {
    leave(records, [text(id)], "discarded", step.turn);
    return;
  }
  leave(records, Array.isArray(deleted) ? deleted.map(String) : [], "pruned", step.turn);
  const record = records.get(text(id));
  if (!record) return;
  record.note = text(note);
  record.observation = text(said);
}

function leave(records: Map<string, ContextRecord>, ids: readonly string[], fate: Fate, turn: number): void {
  for (const id of ids) {
    const record = records.get(id);
    if (record && record.fate === "live") Object.assign(record, { fate, until: turn });
  }
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
