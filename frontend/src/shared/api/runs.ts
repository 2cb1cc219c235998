import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Run = Schemas["RunOut"];
export type RunDetail = Schemas["RunDetail"];
export type RunStatus = Schemas["RunStatus"];
export type StopReason = Schemas["StopReason"];
export type Live = Schemas["LiveOut"];
export type Step = Schemas["StepOut"];
export type StepKind = Schemas["StepKind"];
export type RunRequest = Schemas["RunIn"];

/** Steps a page of the timeline is fetched in. */
export const STEP_PAGE = 256;

const ENDED: ReadonlySet<RunStatus> = new Set(["done", "failed", "cancelled", "dead"]);

/** True once nothing more will be appended to the run. */
export function hasEnded(run: { status: RunStatus }): boolean {
  return ENDED.has(run.status);
}

export function runsQuery(search: string) {
  return infiniteQueryOptions({
    queryKey: ["runs", search],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/runs", {
          params: { query: { q: search || undefined, cursor: pageParam ?? undefined, limit: 20 } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: ({ state }) => (state.data?.pages[0]?.items.some((run) => !hasEnded(run)) ? 5_000 : false),
  });
}

export function runQuery(id: string) {
  return queryOptions({
    queryKey: ["run", id],
    queryFn: ({ signal }) => unwrap(api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: id } }, signal })),
  });
}

/** One page of slim steps, those with a sequence number above `after`. */
export function fetchSteps(id: string, after: number, signal?: AbortSignal) {
  return unwrap(
    api.GET("/api/v1/runs/{run_id}/steps", {
      params: { path: { run_id: id }, query: { after, limit: STEP_PAGE } },
      signal,
    }),
  );
}

export function stepQuery(id: string, seq: number) {
  return queryOptions({
    queryKey: ["step", id, seq],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/steps/{seq}", { params: { path: { run_id: id, seq } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** `key` makes a repeat of the same request harmless. */
export function createRun(body: RunRequest, key: string) {
  return unwrap(api.POST("/api/v1/runs", { body, params: { header: { "idempotency-key": key } } }));
}

/** `key` makes a repeat of the same request harmless. */
export function forkRun(id: string, step: number, key: string) {
  return unwrap(
    api.POST("/api/v1/runs/{run_id}/fork", {
      params: { path: { run_id: id }, header: { "idempotency-key": key } },
      body: { at: step, engines: {}, message: "" },
    }),
  );
}

export function cancelRun(id: string, mode: "discard" | "write") {
  return unwrap(api.POST("/api/v1/runs/{run_id}/cancel", { params: { path: { run_id: id } }, body: { mode } }));
}

export function pauseRun(id: string) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/pause", { params: { path: { run_id: id } } }));
}

export function resumeRun(id: string) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/resume", { params: { path: { run_id: id } } }));
}

export function steerRun(id: string, text: string) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/messages", { params: { path: { run_id: id } }, body: { text } }));
}

export function exportAddress(id: string, format: "md" | "html" | "json"): string {
  return `/api/v1/runs/${encodeURIComponent(id)}/export?format=${format}`;
}
