import { t } from "@lingui/core/macro";
import { isRetryable, ProblemError } from "../api/client";
import { type Uploaded, uploadFiles } from "../api/library";
import type { PickedFile } from "./read-drop";

/** The outcome of one file. */
export interface UploadResult extends Pick<Uploaded, "name" | "outcome" | "problem"> {
  /** `null` means that the file was rejected or failed. */
  source: { id: string; collection: string } | null;
}

/** Delays before each retry, in milliseconds, while the server is busy or unavailable. */
export const RETRY_DELAYS_MS = [2_000, 4_000, 8_000, 16_000];

type Sleep = (milliseconds: number) => Promise<void>;

const sleep: Sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function toUploadResult({ name, outcome, problem, source }: Uploaded): UploadResult {
  return { name, outcome, problem, source: source && { id: source.id, collection: source.collection } };
}

/**
 * Upload a few files in one request, with retries while the server is busy or unavailable. Files that could not be sent
 * are `failed`.
 */
export async function uploadChunk(
  files: readonly PickedFile[],
  collection: string,
  pause = sleep,
): Promise<UploadResult[]> {
  for (const delay of [...RETRY_DELAYS_MS, null]) {
    try {
      return (await uploadFiles(files, collection)).files.map(toUploadResult);
    } catch (error) {
      const canRetry = isRetryable(error) || (error instanceof ProblemError && error.status === 429);
      if (delay === null || !canRetry) return failedResults(files, describeError(error));
      await pause(delay);
    }
  }
  return [];
}

/** Return a failed result for each of these files. */
export function failedResults(files: readonly PickedFile[], problem: string): UploadResult[] {
  return files.map(({ name }) => ({ name, outcome: "failed", problem, source: null }));
}

function describeError(error: unknown): string {
  if (!(error instanceof ProblemError)) return t`The file could not be sent. Add it again.`;
  if (error.status === 0) return t`${error.title}. Add it again later.`;
  return [error.detail || error.title, error.remedy].filter(Boolean).join(" ");
}
