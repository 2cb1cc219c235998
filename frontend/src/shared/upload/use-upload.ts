import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useSyncExternalStore } from "react";
import type { PickedFolder } from "./read-drop";
import { getUpload } from "./upload";
import type { UploadResult } from "./upload-chunk";

/** The upload of a draft. It continues when the view is closed, and a reload shows its results. */
export function useUpload(draft: string) {
  const client = useQueryClient();
  const upload = getUpload(draft);
  const state = useSyncExternalStore(upload.subscribe, upload.state);
  const send = useCallback(
    async (picked: Promise<PickedFolder[]> | PickedFolder[], collection: string) => {
      await upload.send(picked, collection);
      await client.invalidateQueries({ queryKey: ["library"] });
    },
    [client, upload],
  );
  const clear = useCallback(() => upload.clear(), [upload]);
  return { state, send, clear };
}

/** Return the ids of the uploaded sources, without rejected files. */
export function listSourceIds(results: readonly UploadResult[]): string[] {
  return [...new Set(results.flatMap((result) => (result.source ? [result.source.id] : [])))];
}

/** Return the collections of the uploaded sources, without single files. */
export function listCollections(results: readonly UploadResult[]): string[] {
  return [...new Set(results.flatMap((result) => (result.source?.collection ? [result.source.collection] : [])))];
}

/** Return the names of the uploaded documents that are in no collection. */
export function listSingleNames(results: readonly UploadResult[]): string[] {
  return [...new Set(results.flatMap(({ name, source }) => (source?.collection === "" ? [name] : [])))];
}
