import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { PickedFile } from "../upload/read-drop";
import { api, type Schemas, unwrap } from "./client";

export type Source = Schemas["SourceOut"];
export type Hit = Schemas["HitOut"];
export type Passage = Schemas["PassageOut"];
export type Uploaded = Schemas["UploadedOut"];
export type Erased = Schemas["ErasedOut"];

/** `collection` null: all of them. The empty one holds what was uploaded file by file. */
export function sourcesQuery(collection: string | null, search: string) {
  return infiniteQueryOptions({
    queryKey: ["library", "sources", collection, search],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/library", {
          params: {
            query: {
              collection: collection ?? undefined,
              q: search || undefined,
              cursor: pageParam ?? undefined,
              limit: 50,
            },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

export const collectionsQuery = queryOptions({
  queryKey: ["library", "collections"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/library/collections", { signal })),
});

export function passagesQuery(collection: string | null, search: string) {
  return queryOptions({
    queryKey: ["library", "hits", collection, search],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/library/search", {
          params: { query: { q: search, limit: 12, collection: collection ?? undefined } },
          signal,
        }),
      ),
    enabled: search.trim().length > 1,
  });
}

/** What a collection is called: a folder of this machine by its last name. */
export function collectionName(name: string): string {
  return name.split(/[\\/]/).findLast(Boolean) ?? "single files";
}

/** Whether a collection is a folder of the server's machine, which only `offing` adds documents to. */
export function isServerFolder(collection: string): boolean {
  return /[\\/]/.test(collection);
}

export interface SpanKey {
  artefact: string;
  start: number;
  end: number;
}

/** A span with the text around it. Stored text never changes, so it is fetched once. */
export function passageQuery({ artefact, start, end }: SpanKey, around = 600) {
  return queryOptions({
    queryKey: ["passage", artefact, start, end, around],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/library/passages", { params: { query: { artefact, start, end, around } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Sends files; each has an outcome of its own. `collection` empty: single files. */
export function uploadFiles(files: readonly PickedFile[], collection: string, signal?: AbortSignal) {
  return unwrap(
    api.POST("/api/v1/library", {
      body: { files: files.map(({ name }) => name), ...(collection && { collection }) },
      // The fields are those of the typed body, so that a field that the server does not know is a type error.
      bodySerializer: ({ files: _names, ...fields }) => {
        const form = new FormData();
        for (const { name, file } of files) form.append("files", file, name);
        for (const [name, value] of Object.entries(fields)) form.append(name, value);
        return form;
      },
      signal,
    }),
  );
}

export function eraseSource(id: string) {
  return unwrap(api.DELETE("/api/v1/library/sources/{source_id}", { params: { path: { source_id: id } } }));
}
