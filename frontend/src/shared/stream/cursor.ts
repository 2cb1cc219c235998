/** Where a stream of several runs stands, as `run:seq,run:seq`. Pure. */

/** The last sequence number seen, by run. 0: nothing yet. */
export type Positions = ReadonlyMap<string, number>;

export function formatCursor(positions: Positions): string {
  return [...positions].map(([run, seq]) => `${run}:${seq}`).join(",");
}

/** Entries that are not `run:number` are left out. */
export function parseCursor(text: string): Positions {
  const positions = new Map<string, number>();
  for (const entry of text.split(",")) {
    const cut = entry.lastIndexOf(":");
    const seq = Number(entry.slice(cut + 1));
    if (cut > 0 && entry.length > cut + 1 && Number.isInteger(seq) && seq >= 0) positions.set(entry.slice(0, cut), seq);
  }
  return positions;
}

/** The positions after a step was seen; an older one changes nothing. */
export function advanced(positions: Positions, run: string, seq: number): Positions {
  const at = positions.get(run);
  return at === undefined || seq <= at ? positions : new Map(positions).set(run, seq);
}

/** Every run that anybody wants, from the earliest place that anybody needs it. */
export function earliest(wants: Iterable<Positions>): Positions {
  const merged = new Map<string, number>();
  for (const want of wants) {
    for (const [run, seq] of want) merged.set(run, Math.min(seq, merged.get(run) ?? seq));
  }
  return merged;
}

export function sameRuns(left: Positions, right: Positions): boolean {
  return left.size === right.size && [...left.keys()].every((run) => right.has(run));
}
