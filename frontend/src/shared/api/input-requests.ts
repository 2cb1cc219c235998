import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type InputRequest = Schemas["InputRequestOut"];
export type InputResponse = Partial<Schemas["InputResponseIn"]>;

/** Input requests of a run, with and without a response. */
export function inputRequestsQuery(runId: string) {
  return queryOptions({
    queryKey: ["input-requests", runId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/input-requests", { params: { path: { run_id: runId } }, signal })),
  });
}

/** Send a response. The first response counts; the server rejects a later one. */
export function respondToInputRequest(runId: string, number: number, response: InputResponse) {
  return unwrap(
    api.POST("/api/v1/runs/{run_id}/input-requests/{number}/response", {
      params: { path: { run_id: runId, number } },
      body: response as Schemas["InputResponseIn"],
    }),
  );
}
