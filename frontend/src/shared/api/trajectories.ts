/** A run as training data: segments, and role calls with their tokens, in pages. */

import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Trajectory = Schemas["TrajectoryOut"];
export type RoleCall = Schemas["TrajectoryRoleCallOut"];
export type Segment = Schemas["TrajectorySegmentOut"];
export type Tokens = Schemas["TrajectoryTokensOut"];

const PAGE_SIZE = 20;

export function trajectoryQuery(runId: string, active: boolean) {
  return infiniteQueryOptions({
    queryKey: ["trajectory", runId, active],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/trajectory", {
          params: { path: { run_id: runId }, query: { after: pageParam, limit: PAGE_SIZE } },
          signal,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next,
    staleTime: active ? 0 : Number.POSITIVE_INFINITY,
  });
}
