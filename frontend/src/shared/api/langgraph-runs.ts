import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";
import type { InputResponse } from "./input-requests";

export type LangGraphRun = Schemas["LangGraphRunOut"];
export type GraphInterrupt = LangGraphRun["interrupts"][number];

/**
 * What a run of a LangGraph client began with, what it left, and what waits for a response. `lastSeq` is the last step of
 * the run: the state of an active run changes with its steps.
 */
export function langGraphRunQuery(runId: string, lastSeq: number) {
  return queryOptions({
    queryKey: ["langgraph-run", runId, lastSeq],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/langgraph", { params: { path: { run_id: runId } }, signal })),
    placeholderData: keepPreviousData,
  });
}

/** Respond to an interrupt at which a run ended. Returns the run that continues from it. */
export function respondToInterrupt(runId: string, interruptId: string, response: InputResponse) {
  return unwrap(
    api.POST("/api/v1/runs/{run_id}/interrupts/{interrupt_id}/response", {
      params: { path: { run_id: runId, interrupt_id: interruptId } },
      body: response as Schemas["InputResponseIn"],
    }),
  );
}
