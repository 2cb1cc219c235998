import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
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

/** `collection` empty: the server's default one. */
export function uploadFiles(files: readonly File[], collection: string, signal?: AbortSignal) {
  const form = new FormData();
  for (const file of files) form.append("files", file, file.name);
  if (collection) form.append("collection", collection);
  return unwrap(
    api.POST("/api/v1/library", {
      body: form as unknown as { files: string[]; collection?: string },
      bodySerializer: (body) => body as unknown as FormData,
      signal,
    }),
  );
}

export function eraseSource(id: string) {
  return unwrap(api.DELETE("/api/v1/library/sources/{source_id}", { params: { path: { source_id: id } } }));
}
