import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";
import type { Run } from "./runs";

export type ChildRun = Schemas["ChildRunOut"];

const POLL_MS = 2_000;

/**
 * Parent and child runs of a run. Reloaded when the status of the run changes, and regularly while a child run is
 * active.
 */
export function runTreeQuery({ id, status }: Pick<Run, "id" | "status">) {
  return queryOptions({
    queryKey: ["run-tree", id, status],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/tree", { params: { path: { run_id: id } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.children.some((child) => child.ended_at === null) ? POLL_MS : false),
  });
}
