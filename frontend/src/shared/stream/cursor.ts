/** The cursor of a stream of several runs, as `run:seq,run:seq`. Pure. */

/** The last sequence number seen of each run. 0 means none. */
export type StreamCursor = ReadonlyMap<string, number>;

export function renderCursor(cursor: StreamCursor): string {
  return [...cursor].map(([run, seq]) => `${run}:${seq}`).join(",");
}

/** Parse a cursor. Entries that are not `run:number` are skipped. */
export function parseCursor(text: string): StreamCursor {
  const cursor = new Map<string, number>();
  for (const entry of text.split(",")) {
    const colon = entry.lastIndexOf(":");
    const seq = Number(entry.slice(colon + 1));
    if (colon > 0 && entry.length > colon + 1 && Number.isInteger(seq) && seq >= 0)
      cursor.set(entry.slice(0, colon), seq);
  }
  return cursor;
}

/** Return the cursor after a step was seen. An older step changes nothing. */
export function advanceCursor(cursor: StreamCursor, runId: string, seq: number): StreamCursor {
  const at = cursor.get(runId);
  return at === undefined || seq <= at ? cursor : new Map(cursor).set(runId, seq);
}

/** Merge cursors: every run that occurs in one, with its lowest sequence number. */
export function mergeEarliest(cursors: Iterable<StreamCursor>): StreamCursor {
  const merged = new Map<string, number>();
  for (const cursor of cursors) {
    for (const [run, seq] of cursor) merged.set(run, Math.min(seq, merged.get(run) ?? seq));
  }
  return merged;
}

export function hasSameRuns(left: StreamCursor, right: StreamCursor): boolean {
  return left.size === right.size && [...left.keys()].every((run) => right.has(run));
}
