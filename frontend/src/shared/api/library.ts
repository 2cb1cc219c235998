import { t } from "@lingui/core/macro";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { PickedFile } from "../upload/read-drop";
import { api, type Schemas, unwrap } from "./client";

export type Source = Schemas["SourceOut"];
export type Hits = Schemas["SearchHitPage"];
export type LibraryStatus = Schemas["LibraryStatusOut"];
export type Passage = Schemas["PassageOut"];
export type Uploaded = Schemas["UploadedFileOut"];
export type Erased = Schemas["ErasureOut"];

/** List sources. `null` means all collections; the empty collection contains files that were uploaded singly. */
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

/** How many texts have vectors of the embedding model. Repeated while some have none, because they are computed in the background. */
export const libraryStatusQuery = queryOptions({
  queryKey: ["library", "status"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/library/status", { signal })),
  refetchInterval: ({ state }) => {
    const { embedding, text_count: textCount } = state.data ?? {};
    return embedding && embedding.filled_count + embedding.rejected_count < (textCount ?? 0) ? 5_000 : false;
  },
});

/** Return the label of a collection. A folder on the server is shown by its last path segment. */
export function collectionLabel(name: string): string {
  return name.split(/[\\/]/).findLast(Boolean) ?? t`single files`;
}

/** Return whether a collection is a folder on the server. Only the `offing` command adds documents to it. */
export function isServerFolder(collection: string): boolean {
  return /[\\/]/.test(collection);
}

export interface SourceSpan {
  text_id: string;
  start: number;
  end: number;
}

/** A source span with its surrounding text. Stored text never changes, so it is loaded once. */
export function passageQuery({ text_id: textId, start, end }: SourceSpan, around = 600) {
  return queryOptions({
    queryKey: ["passage", textId, start, end, around],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/library/passages", {
          params: { query: { text_id: textId, start, end, context_chars: around } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** A stored text in windows of `size` code points, from window `first` in both directions. */
export function documentTextQuery(textId: string, length: number, first: number, size: number) {
  return infiniteQueryOptions({
    queryKey: ["document", textId, first],
    initialPageParam: first,
    queryFn: ({ pageParam, signal }) => {
      const query = { text_id: textId, start: pageParam * size, end: Math.min(length, (pageParam + 1) * size) };
      return unwrap(api.GET("/api/v1/library/passages", { params: { query: { ...query, context_chars: 0 } }, signal }));
    },
    getNextPageParam: (_page, _pages, window) => ((window + 1) * size < length ? window + 1 : null),
    getPreviousPageParam: (_page, _pages, window) => (window > 0 ? window - 1 : null),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Upload files. Each file has its own outcome. An empty `collection` uploads single files. */
export function uploadFiles(files: readonly PickedFile[], collection: string, signal?: AbortSignal) {
  return unwrap(
    api.POST("/api/v1/library", {
      body: { files: files.map(({ name }) => name), ...(collection && { collection }) },
      // The fields are those of the typed body, so an unknown field is a type error.
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

export type Collection = Schemas["CollectionOut"];

/** Rename a collection. Ended runs that were limited to it follow. */
export function renameCollection(name: string, newName: string) {
  return unwrap(api.POST("/api/v1/library/collections/rename", { body: { name, new_name: newName } }));
}

/** Delete a collection. With `erase`, one request erases some of its documents; repeat it until `remaining` is 0. */
export function deleteCollection(name: string, documents: "keep" | "erase") {
  return unwrap(api.DELETE("/api/v1/library/collections", { params: { query: { name, documents } } }));
}

/** Move documents to a collection, all or none. An empty name means single files. */
export function moveSources(sourceIds: readonly string[], collection: string) {
  return unwrap(api.POST("/api/v1/library/sources/move", { body: { source_ids: [...sourceIds], collection } }));
}

/** Return the name of a document as people read it. */
export function sourceName(source: Pick<Source, "title" | "name">): string {
  return source.title || source.name;
}

export function sourceQuery(sourceId: string) {
  return queryOptions({
    queryKey: ["library", "source", sourceId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/library/sources/{source_id}", { params: { path: { source_id: sourceId } }, signal })),
  });
}

export function eraseSource(sourceId: string) {
  return unwrap(api.DELETE("/api/v1/library/sources/{source_id}", { params: { path: { source_id: sourceId } } }));
}
