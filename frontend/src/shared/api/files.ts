/** Files written by the code of a run. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type RunFile = Schemas["RunFileOut"];

/** All files of a run, in order. */
export function runFilesQuery(runId: string) {
  return queryOptions({
    queryKey: ["run-files", runId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/files", { params: { path: { run_id: runId } }, signal })),
  });
}

/** Return the URL of a file. The server sends everything except PNG images as a download. */
export function fileUrl(runId: string, sha256: string): string {
  return `/api/v1/runs/${encodeURIComponent(runId)}/files/${encodeURIComponent(sha256)}`;
}

const IMAGE_TYPES = ["image/png", "image/svg+xml"];

/**
 * Return the files named in a stored tool result. Entries without the expected form are skipped, since the record may
 * be old. Pure.
 */
export function parseFiles(payload: unknown): RunFile[] {
  const content = getField(payload, "content");
  const files = getField(content, "files");
  if (!Array.isArray(files)) return [];
  return files.flatMap((file: unknown) => {
    const [name, sha256, bytes, kind] = ["name", "sha256", "bytes", "kind"].map((field) => getField(file, field));
    if (typeof name !== "string" || typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) return [];
    if (typeof bytes !== "number" || typeof kind !== "string") return [];
    return [{ name, sha256, size_bytes: bytes, media_type: kind, is_image: IMAGE_TYPES.includes(kind) }];
  });
}

function getField(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
