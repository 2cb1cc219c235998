import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { forgetDraft, readDraft, storeDraft } from "../ui/drafts";
import { batches, type Picked } from "./read-drop";
import { failed, sendGroup, type UploadResult } from "./send-group";

export type { UploadResult } from "./send-group";

/** Requests in succession that failed; then the rest is not sent. */
const MAX_FAILURES = 2;

export interface UploadState {
  /** Files handed in so far, and how many of them the server has answered for. */
  total: number;
  done: number;
  busy: boolean;
  results: UploadResult[];
  error: unknown;
  /** What was picked last holds no file that can be read. */
  empty: boolean;
}

const NOTHING: UploadState = { total: 0, done: 0, busy: false, results: [], error: null, empty: false };

function restored(draft: string | null): UploadState {
  const results = draft === null ? [] : readDraft<UploadResult[]>(draft, []);
  return { ...NOTHING, results, total: results.length, done: results.length };
}

/** Sends files a handful at a time and keeps the outcome of each; a request that fails does not end the others. `draft`: the name under which a reload finds them. */
export function useUpload(draft: string | null = null) {
  const client = useQueryClient();
  const [state, setState] = useState(() => restored(draft));

  const send = useCallback(
    async (picking: Promise<Picked[]> | Picked[], collection: string) => {
      setState((was) => ({ ...was, busy: true, error: null, empty: false }));
      try {
        const picked = await picking;
        const total = picked.reduce((sum, { files }) => sum + files.length, 0);
        setState((was) => ({ ...was, total: was.total + total, empty: total === 0 }));
        let failures = 0;
        for (const { folder, files } of picked) {
          for (const group of batches(files)) {
            const sent =
              failures < MAX_FAILURES
                ? await sendGroup(group, folder || collection)
                : failed(group, "It was not sent, because those before it could not be. Add it again later.");
            failures = sent.every((one) => one.outcome === "failed") ? failures + 1 : 0;
            setState((was) => {
              const results = [...was.results, ...sent];
              if (draft !== null) storeDraft(draft, results);
              return { ...was, done: was.done + group.length, results };
            });
          }
        }
      } catch (error) {
        setState((was) => ({ ...was, error, total: was.done }));
      } finally {
        setState((was) => ({ ...was, busy: false }));
        await client.invalidateQueries({ queryKey: ["library"] });
      }
    },
    [client, draft],
  );
  const clear = useCallback(() => {
    if (draft !== null) forgetDraft(draft);
    setState(NOTHING);
  }, [draft]);
  return { state, send, clear };
}

/** The sources that uploads ended in, refused ones left out. */
export function sourcesOf(results: readonly UploadResult[]): string[] {
  return [...new Set(results.flatMap((result) => (result.source ? [result.source.id] : [])))];
}

/** The collections that uploads ended in; those of single files left out. */
export function collectionsOf(results: readonly UploadResult[]): string[] {
  return [...new Set(results.flatMap((result) => (result.source?.collection ? [result.source.collection] : [])))];
}
