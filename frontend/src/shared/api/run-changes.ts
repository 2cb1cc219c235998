/** Changes and deletions of runs, and the numbers of runs that they change. */

import { queryOptions } from "@tanstack/react-query";
import { api, ProblemError, type Schemas, unwrap } from "./client";
import type { Run } from "./runs";

export type RunChange = Schemas["RunChangeIn"];

/** Maximum number of runs that one request changes or deletes. */
const MAX_CHANGED_RUNS = 200;

/**
 * Send requests with a part of a list each, and return all results. A request that fails after another one has changed
 * runs ends them: its runs and those after it get its problem, so that the changes before it are not lost from sight.
 */
async function sendInParts<T, R>(
  all: readonly T[],
  send: (part: T[]) => Promise<{ items: R[] }>,
  reject: (one: T, problem: Schemas["Problem"]) => R,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < all.length; at += MAX_CHANGED_RUNS) {
    try {
      results.push(...(await send(all.slice(at, at + MAX_CHANGED_RUNS))).items);
    } catch (error) {
      if (at === 0 || !(error instanceof ProblemError)) throw error;
      const { status, title, detail, field, remedy } = error;
      const problem = { type: "about:blank", status, title, detail, field, remedy, texts: {} };
      return [...results, ...all.slice(at).map((one) => reject(one, problem))];
    }
  }
  return results;
}

export type RunChangeOf = RunChange & { run_id: string };

/** Give runs titles or tags, pin or archive them. Absent fields stay unchanged. Returns for each the run or why it stays as it was. */
export function changeRuns(changes: readonly RunChangeOf[]): Promise<Schemas["RunChangeResultOut"][]> {
  return sendInParts(
    changes,
    (part) => unwrap(api.PATCH("/api/v1/runs", { body: { changes: part } })),
    ({ run_id }, problem) => ({ run_id, run: null, problem }),
  );
}

/**
 * Delete runs, with `laterRuns` also the later runs of their threads. Returns for each what was deleted, or why not. The
 * latest is deleted first: a run that has later ones in its thread stays.
 */
export function deleteRuns(
  runs: readonly Pick<Run, "id" | "created_at">[],
  laterRuns: boolean,
): Promise<Schemas["RunDeletionResultOut"][]> {
  const latestFirst = [...runs].sort((left, right) => right.created_at.localeCompare(left.created_at));
  return sendInParts(
    latestFirst.map(({ id }) => id),
    (run_ids) => unwrap(api.POST("/api/v1/runs/deletions", { body: { run_ids, later_runs: laterRuns } })),
    (run_id, problem) => ({ run_id, deletion: null, problem }),
  );
}

/** Numbers of runs in the views of a list. 100 means 100 or more. */
export const runCountsQuery = queryOptions({
  queryKey: ["run-counts"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/runs/counts", { signal })),
  refetchInterval: 30_000,
});
