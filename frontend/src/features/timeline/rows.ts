/** Which step stands in which row: all of them in order, or a chosen few. Pure. */

export type Rows = { count: number } | { seqs: readonly number[] };

export function rowAt(rows: Rows, index: number): number {
  return "count" in rows ? index + 1 : (rows.seqs[index] ?? 0);
}
