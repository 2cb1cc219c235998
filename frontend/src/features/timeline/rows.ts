/** Maps rows to steps: all steps in order, or a filtered list. Pure. */

export type Rows = { count: number } | { seqs: readonly number[] };

export function seqOfRow(rows: Rows, index: number): number {
  return "count" in rows ? index + 1 : (rows.seqs[index] ?? 0);
}
