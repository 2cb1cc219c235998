/** Share links of reports, and the report that a reader of a link gets. */

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type Share = Schemas["ShareOut"];
export type ShareRequest = Schemas["ShareIn"];
export type CreatedShare = Schemas["CreatedShareOut"];
export type SharedReport = Schemas["SharedReportOut"];
export type SharedCitation = Schemas["SharedCitationOut"];
export type SharedSource = Schemas["SharedSourceOut"];
export type SharedFormat = "md" | "html" | "docx" | "pdf";

/** The share links of a run, newest first. */
export function sharesQuery(runId: string) {
  return infiniteQueryOptions({
    queryKey: ["shares", runId],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/shares", {
          params: { path: { run_id: runId }, query: { cursor: pageParam ?? undefined, limit: 20 } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

/** The share links of all runs of the tenant, newest first. */
export const allSharesQuery = infiniteQueryOptions({
  queryKey: ["shares"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(api.GET("/api/v1/shares", { params: { query: { cursor: pageParam ?? undefined, limit: 50 } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next,
});

export function createShare(runId: string, body: ShareRequest) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/shares", { params: { path: { run_id: runId } }, body }));
}

export async function revokeShare(shareId: string): Promise<void> {
  await unwrap(api.DELETE("/api/v1/shares/{share_id}", { params: { path: { share_id: shareId } } }));
}

/** The report of a link. It is requested once per page, because the server counts how often a link is opened. */
export function sharedReportQuery(token: string) {
  return queryOptions({
    queryKey: ["shared-report", token],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/shared/{token}", {
          params: { path: { token } },
          credentials: "omit",
          cache: "no-store",
          referrerPolicy: "no-referrer",
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
}

/** Return the URL of a shared report as a file. */
export function sharedFileUrl(token: string, format: SharedFormat): string {
  return `/api/v1/shared/${encodeURIComponent(token)}/export?format=${format}`;
}
