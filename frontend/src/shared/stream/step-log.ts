/**
 * The steps of one run as far as this page holds them: sparse, in pages, keyed by sequence number.
 *
 * The only home of the rule that makes reload and reconnect safe: a run's numbers go 1..n without a hole, a step never
 * changes, so a repeat is ignored and a hole is something to fetch. Pure; knows no network and no cache.
 */

import { STEP_PAGE, type Step } from "../api/runs";

export interface StepLog {
  /** The highest sequence number known to exist, whether its step is held or not. 0: none. */
  readonly last: number;
  /** Page p holds the steps p * 256 + 1 … (p + 1) * 256. */
  readonly pages: ReadonlyMap<number, readonly (Step | undefined)[]>;
}

export const EMPTY_LOG: StepLog = { last: 0, pages: new Map() };

export function pageOf(seq: number): number {
  return Math.floor((seq - 1) / STEP_PAGE);
}

export function stepAt(log: StepLog, seq: number): Step | undefined {
  return log.pages.get(pageOf(seq))?.[(seq - 1) % STEP_PAGE];
}

/** The same log, knowing that steps up to `last` exist. Never goes back. */
export function reaching(log: StepLog, last: number): StepLog {
  return last > log.last ? { ...log, last } : log;
}

/** The log with these steps in their places. Steps it already holds are ignored; if all are, it is the same object. */
export function withSteps(log: StepLog, steps: readonly Step[]): StepLog {
  const fresh = steps.filter((step) => step.seq > 0 && !stepAt(log, step.seq));
  if (fresh.length === 0) return log;
  const pages = new Map(log.pages);
  const copied = new Map<number, (Step | undefined)[]>();
  let last = log.last;
  for (const step of fresh) {
    const page = pageOf(step.seq);
    const rows = copied.get(page) ?? [...(pages.get(page) ?? [])];
    rows[(step.seq - 1) % STEP_PAGE] = step;
    copied.set(page, rows);
    last = Math.max(last, step.seq);
  }
  for (const [page, rows] of copied) pages.set(page, rows);
  return { last, pages };
}

/** The pages with a hole between the steps `from` and `to`, both included, as far as the log reaches. */
export function missingPages(log: StepLog, from: number, to: number): number[] {
  const missing: number[] = [];
  const end = Math.min(to, log.last);
  for (let seq = Math.max(1, from); seq <= end; seq += 1) {
    if (stepAt(log, seq)) continue;
    missing.push(pageOf(seq));
    seq = (pageOf(seq) + 1) * STEP_PAGE;
  }
  return missing;
}

/** Held steps among these numbers, in their order. */
export function heldSteps(log: StepLog, seqs: readonly number[]): Step[] {
  return seqs.map((seq) => stepAt(log, seq)).filter((step) => step !== undefined);
}
