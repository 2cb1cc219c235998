import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useSyncExternalStore } from "react";
import type { Picked } from "./read-drop";
import type { UploadResult } from "./send-group";
import { uploadOf } from "./upload";

/** The upload under the name of a draft: it goes on when the view is left, and a reload finds what became of it. */
export function useUpload(draft: string) {
  const client = useQueryClient();
  const upload = uploadOf(draft);
  const state = useSyncExternalStore(upload.subscribe, upload.state);
  const send = useCallback(
    async (picking: Promise<Picked[]> | Picked[], collection: string) => {
      await upload.send(picking, collection);
      await client.invalidateQueries({ queryKey: ["library"] });
    },
    [client, upload],
  );
  const clear = useCallback(() => upload.clear(), [upload]);
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

/** Names of the documents that ended in no collection. */
export function singlesOf(results: readonly UploadResult[]): string[] {
  return [...new Set(results.flatMap(({ name, source }) => (source?.collection === "" ? [name] : [])))];
}
