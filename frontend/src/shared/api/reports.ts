import { queryOptions } from "@tanstack/react-query";
import { api, isNotFound, type Schemas, unwrap } from "./client";

export type Report = Schemas["ReportOut"];
export type Sentence = Schemas["SentenceOut"];
export type Citation = Schemas["CitationOut"];
export type CitedSource = Schemas["CitedSourceOut"];
export type Rating = Schemas["RatingOut"];
export type RatingRequest = Schemas["RatingIn"];

/** The latest report of a run, requested only once `isWritten`. `null` means that there is none. */
export function reportQuery(runId: string, isWritten: boolean) {
  return queryOptions({
    queryKey: ["report", runId],
    enabled: isWritten,
    queryFn: async ({ signal }) => {
      try {
        return await unwrap(api.GET("/api/v1/runs/{run_id}/report", { params: { path: { run_id: runId } }, signal }));
      } catch (error) {
        if (isNotFound(error)) return null;
        throw error;
      }
    },
  });
}

export function ratingsQuery(runId: string) {
  return queryOptions({
    queryKey: ["ratings", runId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/ratings", { params: { path: { run_id: runId } }, signal })),
  });
}

export function createRating(runId: string, body: RatingRequest) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/ratings", { params: { path: { run_id: runId } }, body }));
}
