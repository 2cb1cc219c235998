/** What the views of one run show beside its steps: its plan, sources, usage, nodes, and matches of a search. */

import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type RunPlan = Schemas["PlanOut"];
export type PlanItem = Schemas["PlanItemIn"];
export type PlanChange = Schemas["PlanChangeOut"];
export type NodeUsage = Schemas["NodeUsageOut"];
export type UsageBreakdown = Schemas["UsageBreakdownOut"];
export type RunSource = Schemas["RunSourceOut"];
export type SourceState = Schemas["SourceState"];
export type StepMatch = Schemas["StepMatchOut"];

const POLL_MS = 4_000;

/** The sources of a long run, or a search in it, take the server up to a second. */
const SLOW_POLL_MS = 15_000;

/** Maximum number of matches that are listed. */
export const MAX_MATCHES = 5_000;

const MATCH_PAGE_SIZE = 1_000;

/** An ended run is read once, an active one again and again. */
function whileActive(active: boolean) {
  return { refetchInterval: active ? POLL_MS : (false as const), staleTime: active ? 0 : Number.POSITIVE_INFINITY };
}

export function planKey(runId: string) {
  return ["run-plan", runId] as const;
}

export function planQuery(runId: string, active: boolean) {
  return queryOptions({
    queryKey: [...planKey(runId), active],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/plan", { params: { path: { run_id: runId } }, signal })),
    ...whileActive(active),
  });
}

/** Replace the plan. `version` is that of the plan that the person saw. */
export function changePlan(runId: string, version: number, items: readonly PlanItem[]) {
  return unwrap(
    api.PUT("/api/v1/runs/{run_id}/plan", {
      params: { path: { run_id: runId } },
      body: { version, items: [...items] },
    }),
  );
}

export interface StepMatches {
  matches: StepMatch[];
  /** Number of all matches, which can be more than are listed. */
  total: number;
}

/** Steps that contain a text and that a node recorded. An empty text and an empty node match every step. */
export function stepMatchesQuery(runId: string, text: string, node: string, active: boolean) {
  return queryOptions({
    queryKey: ["step-matches", runId, text, node, active],
    queryFn: async ({ signal }): Promise<StepMatches> => {
      const matches: StepMatch[] = [];
      let total = 0;
      for (let after: number | null = 0; after !== null && matches.length < MAX_MATCHES; ) {
        const found: Schemas["StepMatchPage"] = await fetchMatches(runId, text, node, after, signal);
        matches.push(...found.items);
        total = found.total ?? total;
        after = found.next === null ? null : Number(found.next);
      }
      return { matches, total };
    },
    placeholderData: keepPreviousData,
    enabled: text !== "" || node !== "",
    ...whileActive(active),
    ...(active && { refetchInterval: SLOW_POLL_MS, staleTime: SLOW_POLL_MS }),
  });
}

function fetchMatches(runId: string, text: string, node: string, after: number, signal: AbortSignal) {
  return unwrap(
    api.GET("/api/v1/runs/{run_id}/step-matches", {
      params: { path: { run_id: runId }, query: { q: text, node: node || undefined, after, limit: MATCH_PAGE_SIZE } },
      signal,
    }),
  );
}

export function nodesQuery(runId: string, active: boolean) {
  return queryOptions({
    queryKey: ["run-nodes", runId, active],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/nodes", { params: { path: { run_id: runId } }, signal })),
    ...whileActive(active),
  });
}

export function usageQuery(runId: string, active: boolean) {
  return queryOptions({
    queryKey: ["run-usage", runId, active],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/usage", { params: { path: { run_id: runId } }, signal })),
    ...whileActive(active),
  });
}

/** `reportCount` changes with each report of the run, because a report decides what is cited. */
export function runSourcesQuery(runId: string, active: boolean, reportCount: number) {
  return queryOptions({
    queryKey: ["run-sources", runId, active, reportCount],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/sources", { params: { path: { run_id: runId } }, signal })),
    placeholderData: keepPreviousData,
    ...whileActive(active),
    ...(active && { refetchInterval: SLOW_POLL_MS, staleTime: SLOW_POLL_MS }),
  });
}
