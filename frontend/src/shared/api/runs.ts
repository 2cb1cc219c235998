import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Run = Schemas["RunOut"];
export type RunDetail = Schemas["RunDetail"];
export type RunStatus = Schemas["RunStatus"];
export type StopReason = Schemas["StopReason"];
export type Live = Schemas["LiveStatusOut"];
export type Step = Schemas["StepOut"];
export type StepKind = Schemas["StepKind"];
export type RunRequest = Schemas["RunIn"];
export type FollowUpKind = Schemas["FollowUpKind"];

/** Number of steps per page of the timeline. */
export const STEP_PAGE_SIZE = 256;

const ENDED_STATUSES: ReadonlySet<RunStatus> = new Set(["done", "failed", "cancelled"]);

/** Return whether the run has ended: no more steps will be appended. */
export function hasEnded(run: { status: RunStatus }): boolean {
  return ENDED_STATUSES.has(run.status);
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

/** Number of runs on the home page. */
const RECENT_RUNS = 8;

/** The latest runs with their step minimaps, in one request. */
export function recentRunsQuery(search: string) {
  return queryOptions({
    queryKey: ["runs", search, "recent"],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/runs", {
          params: { query: { q: search || undefined, limit: RECENT_RUNS, minimap: true } },
          signal,
        }),
      ),
    refetchInterval: ({ state }) => (state.data?.items.some((run) => !hasEnded(run)) ? 5_000 : false),
  });
}

export function runQuery(runId: string) {
  return queryOptions({
    queryKey: ["run", runId],
    queryFn: ({ signal }) => unwrap(api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: runId } }, signal })),
  });
}

/** Fetch one page of steps without payloads, after the sequence number `after`. */
export function fetchSteps(runId: string, after: number, signal?: AbortSignal) {
  return unwrap(
    api.GET("/api/v1/runs/{run_id}/steps", {
      params: { path: { run_id: runId }, query: { after, limit: STEP_PAGE_SIZE } },
      signal,
    }),
  );
}

export function stepQuery(runId: string, seq: number) {
  return queryOptions({
    queryKey: ["step", runId, seq],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/steps/{seq}", { params: { path: { run_id: runId, seq } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Create a run. `key` is the idempotency key. */
export function createRun(body: RunRequest, key: string) {
  return unwrap(api.POST("/api/v1/runs", { body, params: { header: { "idempotency-key": key } } }));
}

/** Fork a run after a step. `key` is the idempotency key. */
export function forkRun(runId: string, step: number, key: string) {
  return unwrap(
    api.POST("/api/v1/runs/{run_id}/fork", {
      params: { path: { run_id: runId }, header: { "idempotency-key": key } },
      body: { at_seq: step, engines: {}, message: "" },
    }),
  );
}

export function cancelRun(runId: string, mode: "discard" | "finish") {
  return unwrap(api.POST("/api/v1/runs/{run_id}/cancel", { params: { path: { run_id: runId } }, body: { mode } }));
}

export function pauseRun(runId: string) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/pause", { params: { path: { run_id: runId } } }));
}

export function resumeRun(runId: string) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/resume", { params: { path: { run_id: runId } } }));
}

export function sendUserMessage(runId: string, text: string) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/messages", { params: { path: { run_id: runId } }, body: { text } }));
}

export function exportUrl(runId: string, format: "md" | "html" | "json"): string {
  return `/api/v1/runs/${encodeURIComponent(runId)}/export?format=${format}`;
}
