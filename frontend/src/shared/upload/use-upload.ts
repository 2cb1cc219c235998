import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { type Uploaded, uploadFiles } from "../api/library";
import { batches, type Picked } from "./read-drop";

export interface UploadState {
  /** Files handed in so far, and how many of them the server has answered for. */
  total: number;
  done: number;
  busy: boolean;
  results: Uploaded[];
  error: unknown;
}

const NOTHING: UploadState = { total: 0, done: 0, busy: false, results: [], error: null };

/** Sends files a handful at a time and keeps what became of each. */
export function useUpload() {
  const client = useQueryClient();
  const [state, setState] = useState(NOTHING);

  const send = useCallback(
    async (picked: Picked, collection: string) => {
      setState((was) => ({ ...was, total: was.total + picked.files.length, busy: true, error: null }));
      try {
        for (const group of batches(picked.files)) {
          const { files } = await uploadFiles(group, collection);
          setState((was) => ({ ...was, done: was.done + group.length, results: [...was.results, ...files] }));
        }
      } catch (error) {
        setState((was) => ({ ...was, error, total: was.done }));
      } finally {
        setState((was) => ({ ...was, busy: false }));
        await client.invalidateQueries({ queryKey: ["library"] });
      }
    },
    [client],
  );
  const clear = useCallback(() => setState(NOTHING), []);
  return { state, send, clear };
}

/** The sources that uploads ended in, refused ones left out. */
export function sourcesOf(results: readonly Uploaded[]): string[] {
  return [...new Set(results.flatMap((result) => (result.source ? [result.source.id] : [])))];
}
