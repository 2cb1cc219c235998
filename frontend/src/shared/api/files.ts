/** Files that the code of a run has written. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type RunFile = Schemas["FileOut"];

/** All of a run, in order. */
export function runFilesQuery(runId: string) {
  return queryOptions({
    queryKey: ["run-files", runId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/runs/{run_id}/files", { params: { path: { run_id: runId } }, signal })),
  });
}

/** Where a file's bytes are; the server makes everything but a PNG a download. */
export function fileAddress(runId: string, sha256: string): string {
  return `/api/v1/runs/${encodeURIComponent(runId)}/files/${encodeURIComponent(sha256)}`;
}

const PICTURES = ["image/png", "image/svg+xml"];

/** The files that a tool's stored result names. What does not look like one is left out: a record may be old. Pure. */
export function filesOf(payload: unknown): RunFile[] {
  const content = part(payload, "content");
  const files = part(content, "files");
  if (!Array.isArray(files)) return [];
  return files.flatMap((file: unknown) => {
    const [name, sha256, bytes, kind] = ["name", "sha256", "bytes", "kind"].map((field) => part(file, field));
    if (typeof name !== "string" || typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) return [];
    if (typeof bytes !== "number" || typeof kind !== "string") return [];
    return [{ name, sha256, bytes, kind, picture: PICTURES.includes(kind) }];
  });
}

function part(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
