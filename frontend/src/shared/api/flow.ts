/** Whole steps of a run, for the views of what is particular to its graph. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";
import type { StepKind } from "./runs";

export type WholeStep = Schemas["StepDetail"];

/** Steps back from the last one that such a view looks at. */
export const REACH = 3_000;

const PAGE = 200;
const EVERY = 4_000;

/** Steps of some kinds, oldest first; those of the last `REACH` steps of a long run. */
export function wholeStepsQuery(run: string, kinds: readonly StepKind[], last: number, active: boolean) {
  const from = Math.max(0, Math.floor((last - REACH) / 500) * 500);
  return queryOptions({
    queryKey: ["whole-steps", run, kinds.join(), from, active],
    queryFn: async ({ signal }) => {
      const steps: WholeStep[] = [];
      for (let after: number | null = from; after !== null; ) {
        const page: Schemas["WholeStepPage"] = await fetchWhole(run, kinds, after, signal);
        steps.push(...page.items);
        after = page.next === null ? null : Number(page.next);
      }
      return steps;
    },
    refetchInterval: active ? EVERY : false,
    staleTime: active ? 0 : Number.POSITIVE_INFINITY,
  });
}

function fetchWhole(run: string, kinds: readonly StepKind[], after: number, signal: AbortSignal) {
  return unwrap(
    api.GET("/api/v1/runs/{run_id}/whole-steps", {
      params: { path: { run_id: run }, query: { kind: [...kinds], after, limit: PAGE } },
      signal,
    }),
  );
}

/** The steps under which report versions stand, without their texts. */
export function versionsQuery(run: string, active: boolean) {
  return queryOptions({
    queryKey: ["versions", run, active],
    queryFn: async ({ signal }) => {
      const seqs: number[] = [];
      for (let after: number | null = 0; after !== null; ) {
        const page: Schemas["StepPage"] = await unwrap(
          api.GET("/api/v1/runs/{run_id}/steps", {
            params: { path: { run_id: run }, query: { kind: "note", after, limit: 1000 } },
            signal,
          }),
        );
        seqs.push(...page.items.filter((step) => step.label === "report").map((step) => step.seq));
        after = page.next === null ? null : Number(page.next);
      }
      return seqs;
    },
    refetchInterval: active ? EVERY : false,
    staleTime: active ? 0 : Number.POSITIVE_INFINITY,
  });
}
