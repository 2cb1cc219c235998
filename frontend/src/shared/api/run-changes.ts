/** Changes and deletions of runs, and the numbers of runs that they change. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type RunChange = Schemas["RunChangeIn"];

/** Maximum number of runs that one request changes or deletes. */
const MAX_CHANGED_RUNS = 200;

/** Return the parts of a list of which one request takes each. */
function inRequests<T>(all: readonly T[]): T[][] {
  const count = Math.ceil(all.length / MAX_CHANGED_RUNS);
  return Array.from({ length: count }, (_, nth) => all.slice(nth * MAX_CHANGED_RUNS, (nth + 1) * MAX_CHANGED_RUNS));
}

export type RunChangeOf = RunChange & { run_id: string };

/** Give runs titles or tags, pin or archive them. Absent fields stay unchanged. Returns for each the run or why it stays as it was. */
export async function changeRuns(changes: readonly RunChangeOf[]) {
  const results: Schemas["RunChangeResultOut"][] = [];
  for (const part of inRequests(changes)) {
    results.push(...(await unwrap(api.PATCH("/api/v1/runs", { body: { changes: part } }))).items);
  }
  return results;
}

/** Delete runs, with `laterRuns` also the later runs of their threads. Returns for each what was deleted, or why not. */
export async function deleteRuns(runIds: readonly string[], laterRuns: boolean) {
  const results: Schemas["RunDeletionResultOut"][] = [];
  for (const part of inRequests(runIds)) {
    const body = { run_ids: part, later_runs: laterRuns };
    results.push(...(await unwrap(api.POST("/api/v1/runs/deletions", { body }))).items);
  }
  return results;
}

/** Numbers of runs in the views of a list. 100 means 100 or more. */
export const runCountsQuery = queryOptions({
  queryKey: ["run-counts"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/runs/counts", { signal })),
  refetchInterval: 30_000,
});
