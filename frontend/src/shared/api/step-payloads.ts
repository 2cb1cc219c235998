/** Steps of a run with their payloads, for the state views of graphs. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";
import type { StepKind } from "./runs";

export type StepWithPayload = Schemas["StepDetail"];

/** Maximum number of steps before the last one that a state view loads. */
export const MAX_STEPS = 3_000;

const PAGE_SIZE = 200;
const POLL_MS = 4_000;

/** Steps of some kinds, oldest first. Of a long run, only the last `MAX_STEPS` steps are loaded. */
export function stepsWithPayloadQuery(runId: string, kinds: readonly StepKind[], last: number, active: boolean) {
  const from = Math.max(0, Math.floor((last - MAX_STEPS) / 500) * 500);
  return queryOptions({
    queryKey: ["steps-with-payload", runId, kinds.join(), from, active],
    queryFn: async ({ signal }) => {
      const steps: StepWithPayload[] = [];
      for (let after: number | null = from; after !== null; ) {
        const stepPage: Schemas["FullStepPage"] = await fetchStepPage(runId, kinds, after, signal);
        steps.push(...stepPage.items);
        after = stepPage.next === null ? null : Number(stepPage.next);
      }
      return steps;
    },
    refetchInterval: active ? POLL_MS : false,
    staleTime: active ? 0 : Number.POSITIVE_INFINITY,
  });
}

function fetchStepPage(runId: string, kinds: readonly StepKind[], after: number, signal: AbortSignal) {
  return unwrap(
    api.GET("/api/v1/runs/{run_id}/whole-steps", {
      params: { path: { run_id: runId }, query: { kind: [...kinds], after, limit: PAGE_SIZE } },
      signal,
    }),
  );
}

/** Sequence numbers of the steps that contain report versions, without the texts. */
export function reportVersionsQuery(runId: string, active: boolean) {
  return queryOptions({
    queryKey: ["report-versions", runId, active],
    queryFn: async ({ signal }) => {
      const seqs: number[] = [];
      for (let after: number | null = 0; after !== null; ) {
        const stepPage: Schemas["StepPage"] = await unwrap(
          api.GET("/api/v1/runs/{run_id}/steps", {
            params: { path: { run_id: runId }, query: { kind: "note", after, limit: 1000 } },
            signal,
          }),
        );
        seqs.push(...stepPage.items.filter((step) => step.label === "report").map((step) => step.seq));
        after = stepPage.next === null ? null : Number(stepPage.next);
      }
      return seqs;
    },
    refetchInterval: active ? POLL_MS : false,
    staleTime: active ? 0 : Number.POSITIVE_INFINITY,
  });
}
