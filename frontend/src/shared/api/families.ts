import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";
import type { Run } from "./runs";

export type ChildRun = Schemas["ChildOut"];

const LOOK_AGAIN = 2_000;

/** The runs that a run has started, and the one that started it; read anew with its status, and while one of them works. */
export function familyQuery({ id, status }: Pick<Run, "id" | "status">) {
  return queryOptions({
    queryKey: ["family", id, status],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/family", { params: { path: { run_id: id } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.children.some((child) => child.ended_at === null) ? LOOK_AGAIN : false,
  });
}
