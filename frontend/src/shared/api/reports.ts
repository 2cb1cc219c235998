import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, isNotFound, type Schemas, unwrap } from "./client";

export type Report = Schemas["ReportOut"];
export type Sentence = Schemas["SentenceOut"];
export type Citation = Schemas["CitationOut"];
export type CitedSource = Schemas["CitedSourceOut"];
export type Rating = Schemas["RatingOut"];
export type RatingRequest = Schemas["RatingIn"];
export type Verdict = NonNullable<Sentence["verdict"]>;
export type ReportVersion = Schemas["ReportVersionOut"];
export type ReportChanges = Schemas["ReportChangesOut"];
export type ReportEditRequest = Schemas["ReportEditIn"];
export type EvidencePassage = Schemas["EvidencePassageOut"];

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

/** One version of a report. Versions never change, except that a source may be erased. */
export function reportVersionQuery(runId: string, version: number) {
  return queryOptions({
    queryKey: ["report", runId, version],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/report", { params: { path: { run_id: runId }, query: { version } }, signal }),
      ),
  });
}

/** The versions of a report, newest first. */
export function versionsQuery(runId: string) {
  return infiniteQueryOptions({
    queryKey: ["report", runId, "versions"],
    initialPageParam: null as number | null,
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/report/versions", {
          params: { path: { run_id: runId }, query: pageParam === null ? {} : { before: pageParam } },
          signal,
        }),
      ),
    getNextPageParam: (page) => (page.next === null ? null : Number(page.next)),
  });
}

/** The differences of one version from another. */
export function changesQuery(runId: string, old: number, next: number) {
  return queryOptions({
    queryKey: ["report", runId, "changes", old, next],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/report/changes", {
          params: { path: { run_id: runId }, query: { old, new: next } },
          signal,
        }),
      ),
  });
}

/** The passages that the run has read and that contain all words of `text`. */
export function evidenceQuery(runId: string, text: string) {
  return infiniteQueryOptions({
    queryKey: ["evidence", runId, text],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/evidence", {
          params: { path: { run_id: runId }, query: { q: text, after: pageParam } },
          signal,
        }),
      ),
    getNextPageParam: (page) => (page.next === null ? null : Number(page.next)),
  });
}

/** Save an edited report as the next version. Status 409 means that another one was saved in the meantime. */
export function saveReport(runId: string, body: ReportEditRequest) {
  return unwrap(api.POST("/api/v1/runs/{run_id}/report/versions", { params: { path: { run_id: runId } }, body }));
}

export function restoreReport(runId: string, version: number, latestVersion: number) {
  return unwrap(
    api.POST("/api/v1/runs/{run_id}/report/versions/{version}/restore", {
      params: { path: { run_id: runId, version } },
      body: { latest_version: latestVersion, note: "" },
    }),
  );
}

export const EXPORT_FORMATS = ["md", "html", "pdf", "docx", "bib", "ris", "json"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Have the server write a version of a report as a file. Returns the file with its name. */
export async function exportReport(runId: string, format: ExportFormat, version: number, signal: AbortSignal) {
  const request = api.GET("/api/v1/runs/{run_id}/export", {
    params: { path: { run_id: runId }, query: { format, version } },
    parseAs: "blob",
    signal,
  });
  const file = await unwrap<unknown>(request);
  const { response } = await request;
  return { file: file as Blob, name: fileName(response.headers.get("content-disposition"), format) };
}

/** Return the name that the server gives to a file, by its title in any script. */
export function fileName(disposition: string | null, format: ExportFormat): string {
  const encoded = /filename\*=UTF-8''([^;]+)/.exec(disposition ?? "")?.[1];
  return encoded ? decodeURIComponent(encoded) : `report.${format}`;
}
