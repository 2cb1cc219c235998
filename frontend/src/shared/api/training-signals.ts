import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

/** What people said about a run, and whether it may be learned from. */
export function trainingSignalsQuery(runId: string) {
  return queryOptions({
    queryKey: ["training-signals", runId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/training-signals", { params: { path: { run_id: runId } }, signal })),
  });
}

/** Say what the right answer of a run is. */
export function correctAnswer(runId: string, answer: string) {
  const request = { params: { path: { run_id: runId } }, body: { answer, text_origin: "person" as const } };
  return unwrap(api.POST("/api/v1/runs/{run_id}/answer-corrections", request));
}

/** Decide whether a run may be learned from. `null` means as in the settings. */
export function setTrainingConsent(runId: string, isAllowed: boolean | null) {
  const request = { params: { path: { run_id: runId } }, body: { is_allowed: isAllowed } };
  return unwrap(api.PUT("/api/v1/runs/{run_id}/training-consent", request));
}
