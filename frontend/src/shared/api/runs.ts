import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Run = Schemas["RunOut"];
export type RunDetail = Schemas["RunDetail"];
export type RunStatus = Schemas["RunStatus"];
export type StopReason = Schemas["StopReason"];
export type Live = Schemas["LiveStatusOut"];
export type Step = Schemas["StepOut"];
export type StepSummaryCode = Schemas["StepSummaryCode"];
export type StepKind = Schemas["StepKind"];
export type RunRequest = Schemas["RunIn"];
export type ForkRequest = Schemas["ForkIn"];
export type FollowUpKind = Schemas["FollowUpKind"];

/** Number of steps per page of the timeline. */
export const STEP_PAGE_SIZE = 256;

const ENDED_STATUSES: ReadonlySet<RunStatus> = new Set(["done", "failed", "cancelled"]);

/** Return whether the run has ended: no more steps will be appended. */
export function hasEnded(run: { status: RunStatus }): boolean {
  return ENDED_STATUSES.has(run.status);
}

/** Orders of a list. A search has `best` and `newest`, and other lists have all except `best`. */
export const RUN_ORDERS = ["best", "newest", "oldest", "cost", "duration"] as const;
export type RunOrder = (typeof RUN_ORDERS)[number];

/** What a list of runs shows. Absent fields mean any. */
export interface RunListFilter {
  q?: string | undefined;
  /** Absent: the best match first for a search, else the newest first. */
  order?: RunOrder | undefined;
  state?: "waiting" | "active" | "failed" | "ended" | undefined;
  graph?: string | undefined;
  tag?: string | undefined;
  pinned?: boolean | undefined;
  /** `true` lists only archived runs. They are left out otherwise. */
  archived?: boolean | undefined;
  /** First day, as `2026-11-01`, in the time of this browser. */
  from?: string | undefined;
  /** Last day, as `2026-11-30`. */
  until?: string | undefined;
  /** Id of a source that the reports cite. */
  cites?: string | undefined;
}

/** Number of runs that one request of a list fetches. */
export const RUN_PAGE_SIZE = 50;

/** Return the moment at which a day begins, `offset` days later, or `undefined` without a day. */
function startOfDay(day: string | undefined, offset: number): string | undefined {
  if (!day) return undefined;
  const date = new Date(`${day}T00:00:00`);
  date.setDate(date.getDate() + offset);
  return date.toISOString();
}

/** Maximum number of pinned runs that stand before the others. The list of pinned runs has all of them. */
const PINNED_FIRST = 5;

/** Return the order that a list has. */
export function orderOf({ q, order }: RunListFilter): RunOrder {
  return order ?? (q ? "best" : "newest");
}

/** Return whether pinned runs stand before the others: in a list of the newest runs that are not all pinned. */
export function hasPinnedFirst(filter: RunListFilter): boolean {
  return orderOf(filter) === "newest" && !filter.q && !filter.pinned && !filter.archived;
}

/** Return whether the latest run stands for its thread: in a list of all runs by time. */
export function hasThreads({ order, q, archived: _, ...filters }: RunListFilter): boolean {
  const isByTime = order === undefined || order === "newest" || order === "oldest";
  return isByTime && !q && !Object.values(filters).some(Boolean);
}

/** Fetch one page of a list of runs. `cursor` is that of the page before, `null` for the first. */
export function fetchRuns(filter: RunListFilter, cursor: string | null, limit: number, signal: AbortSignal) {
  const { state, archived, from, until, ...same } = filter;
  return unwrap(
    api.GET("/api/v1/runs", {
      params: {
        query: {
          ...same,
          status: state === "failed" ? "failed" : undefined,
          status_group: state === "active" || state === "ended" ? state : undefined,
          waiting_for_person: state === "waiting" || undefined,
          archived: archived ? "only" : undefined,
          created_from: startOfDay(from, 0),
          created_before: startOfDay(until, 1),
          pinned_first: hasPinnedFirst(filter) ? PINNED_FIRST : undefined,
          latest_of_thread: hasThreads(filter) || undefined,
          cursor: cursor ?? undefined,
          limit,
        },
      },
      signal,
    }),
  );
}

/** How long the pages of a list are kept after it was left, so that Back finds them, in milliseconds. */
const LEFT_LIST_MS = 30 * 60_000;

/** All pages of a list that were loaded. They are not fetched again: `latestRunsQuery` brings what is new. */
export function runListQuery(filter: RunListFilter) {
  return infiniteQueryOptions({
    queryKey: ["run-list", filter],
    queryFn: ({ pageParam, signal }) => fetchRuns(filter, pageParam, RUN_PAGE_SIZE, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: 60_000,
    gcTime: LEFT_LIST_MS,
    refetchOnWindowFocus: false,
  });
}

/** The first runs of a list, fetched regularly: new ones, and the state of those that have not ended. */
export function latestRunsQuery(filter: RunListFilter, limit: number) {
  return queryOptions({
    queryKey: ["run-list-start", filter, limit],
    queryFn: ({ signal }) => fetchRuns(filter, null, limit, signal),
    refetchInterval: ({ state: { data } }) =>
      data && [...(data.pinned ?? []), ...data.items].some((run) => !hasEnded(run)) ? 5_000 : 30_000,
  });
}

/** The tags that runs have, in order: as many as one request lists. */
export const tagsQuery = queryOptions({
  queryKey: ["tags"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/tags", { params: { query: { limit: 500 } }, signal })),
  staleTime: 30_000,
});

/** Return the name of a run: the title that a person gave it, else its question. */
export function runName(run: Pick<Run, "given_title" | "question">): string {
  return run.given_title || run.question;
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
          params: {
            query: {
              q: search || undefined,
              limit: RECENT_RUNS,
              minimap: true,
              pinned_first: search ? undefined : PINNED_FIRST,
              latest_of_thread: search ? undefined : true,
            },
          },
          signal,
        }),
      ),
    refetchInterval: ({ state: { data } }) =>
      data && [...(data.pinned ?? []), ...data.items].some((run) => !hasEnded(run)) ? 5_000 : false,
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

/** Fork a run after a step, with other values from there on. `key` is the idempotency key. */
export function forkRun(runId: string, fork: ForkRequest, key: string) {
  return unwrap(
    api.POST("/api/v1/runs/{run_id}/fork", {
      params: { path: { run_id: runId }, header: { "idempotency-key": key } },
      body: fork,
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
