/**
 * The loaded steps of one run: sparse, in pages, keyed by sequence number. Sequence numbers run from 1 to n without
 * gaps and a step never changes, so a repeated step is ignored and a gap is fetched. This makes reloads and reconnects
 * safe. Pure.
 */

import { STEP_PAGE_SIZE, type Step } from "../api/runs";

export interface StepLog {
  /** The highest sequence number known to exist, whether or not its step is loaded. 0 means none. */
  readonly last: number;
  /** Page p contains the steps p * 256 + 1 … (p + 1) * 256. */
  readonly pages: ReadonlyMap<number, readonly (Step | undefined)[]>;
}

export const EMPTY_LOG: StepLog = { last: 0, pages: new Map() };

export function pageOf(seq: number): number {
  return Math.floor((seq - 1) / STEP_PAGE_SIZE);
}

export function stepAt(log: StepLog, seq: number): Step | undefined {
  return log.pages.get(pageOf(seq))?.[(seq - 1) % STEP_PAGE_SIZE];
}

/** Return the log extended to `last`. It never shrinks. */
export function extendLog(log: StepLog, last: number): StepLog {
  return last > log.last ? { ...log, last } : log;
}

/**
 * Return the log with these steps added. Steps that it contains are ignored; if all are, the same object is returned.
 */
export function addSteps(log: StepLog, steps: readonly Step[]): StepLog {
  const newSteps = steps.filter((step) => step.seq > 0 && !stepAt(log, step.seq));
  if (newSteps.length === 0) return log;
  const pages = new Map(log.pages);
  const copied = new Map<number, (Step | undefined)[]>();
  let last = log.last;
  for (const step of newSteps) {
    const page = pageOf(step.seq);
    const rows = copied.get(page) ?? [...(pages.get(page) ?? [])];
    rows[(step.seq - 1) % STEP_PAGE_SIZE] = step;
    copied.set(page, rows);
    last = Math.max(last, step.seq);
  }
  for (const [page, rows] of copied) pages.set(page, rows);
  return { last, pages };
}

/** Return the pages with a gap between the steps `from` and `to`, both included, up to the end of the log. */
export function listMissingPages(log: StepLog, from: number, to: number): number[] {
  const missing: number[] = [];
  const end = Math.min(to, log.last);
  for (let seq = Math.max(1, from); seq <= end; seq += 1) {
    if (stepAt(log, seq)) continue;
    missing.push(pageOf(seq));
    seq = (pageOf(seq) + 1) * STEP_PAGE_SIZE;
  }
  return missing;
}

/** Return the loaded steps among these sequence numbers, in their order. */
export function listLoadedSteps(log: StepLog, seqs: readonly number[]): Step[] {
  return seqs.map((seq) => stepAt(log, seq)).filter((step) => step !== undefined);
}
