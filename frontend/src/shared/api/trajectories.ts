/** A run as training data: segments, and turns with their tokens, page by page. */

import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Trajectory = Schemas["TrajectoryOut"];
export type Turn = Schemas["TrajectoryTurnOut"];
export type Segment = Schemas["TrajectorySegmentOut"];
export type Tokens = Schemas["TrajectoryTokensOut"];

const PAGE = 20;

export function trajectoryQuery(run: string, active: boolean) {
  return infiniteQueryOptions({
    queryKey: ["trajectory", run, active],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/trajectory", {
          params: { path: { run_id: run }, query: { after: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next,
    staleTime: active ? 0 : Number.POSITIVE_INFINITY,
  });
}
