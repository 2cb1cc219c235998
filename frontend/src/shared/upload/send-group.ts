import { ApiProblem, isPassing } from "../api/client";
import { type Uploaded, uploadFiles } from "../api/library";
import type { PickedFile } from "./read-drop";

/** The outcome of one file. */
export interface UploadResult extends Pick<Uploaded, "name" | "outcome" | "problem"> {
  /** `null` means that the file was refused or failed. */
  source: { id: string; collection: string } | null;
}

/** Milliseconds to wait before each further attempt, while the server is busy or away. */
export const PAUSES = [2_000, 4_000, 8_000, 16_000];

type Wait = (milliseconds: number) => Promise<void>;

const sleep: Wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function resultOf({ name, outcome, problem, source }: Uploaded): UploadResult {
  return { name, outcome, problem, source: source && { id: source.id, collection: source.collection } };
}

/** Send a few files in one request, again while the server is busy or away. What could not be sent is `failed`. */
export async function sendGroup(
  files: readonly PickedFile[],
  collection: string,
  wait = sleep,
): Promise<UploadResult[]> {
  for (const pause of [...PAUSES, null]) {
    try {
      return (await uploadFiles(files, collection)).files.map(resultOf);
    } catch (error) {
      const again = isPassing(error) || (error instanceof ApiProblem && error.status === 429);
      if (pause === null || !again) return failed(files, problemOf(error));
      await wait(pause);
    }
  }
  return [];
}

/** Each of these files as one that the server did not take. */
export function failed(files: readonly PickedFile[], problem: string): UploadResult[] {
  return files.map(({ name }) => ({ name, outcome: "failed", problem, source: null }));
}

function problemOf(error: unknown): string {
  if (!(error instanceof ApiProblem)) return "It could not be sent. Add it again.";
  if (error.status === 0) return `${error.title}. Add it again later.`;
  return [error.detail || error.title, error.remedy].filter(Boolean).join(" ");
}
