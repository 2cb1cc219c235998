/** Maps rows to steps: all steps in order, or a filtered list. Pure. */

import { findSeqs, parseMark, type StepMark } from "@/shared/minimap/marks";

export type Rows = { count: number } | { seqs: readonly number[] };

/**
 * Return the sequence numbers of the steps with one of the marks among the matches of a search. No marks mean any, and
 * `null` means that nothing was searched for.
 */
export function filterSeqs(marks: string, markFilter: string, matches: readonly { seq: number }[] | null): number[] {
  if (matches === null) return findSeqs(marks, [...markFilter] as StepMark[]);
  const seqs = matches.map(({ seq }) => seq);
  return markFilter === "" ? seqs : seqs.filter((seq) => markFilter.includes(parseMark(marks[seq - 1])));
}

export function seqOfRow(rows: Rows, index: number): number {
  return "count" in rows ? index + 1 : (rows.seqs[index] ?? 0);
}

/** Return the row of a step, -1 if it has none. */
export function rowOfSeq(rows: Rows, seq: number): number {
  return "count" in rows ? seq - 1 : rows.seqs.indexOf(seq);
}
