/** Answers while models write them. They are not recorded and not checked. */

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "./client";

export type AnswerDraft = Schemas["AnswerDraftOut"];

/** The drafts of a run, each with its text so far. Events of the stream extend them. */
export function draftsQuery(runId: string) {
  return queryOptions({
    queryKey: ["drafts", runId],
    queryFn: async ({ signal }) => {
      const list = await unwrap(
        api.GET("/api/v1/runs/{run_id}/drafts", { params: { path: { run_id: runId } }, signal }),
      );
      return list.items;
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

/** Return the drafts with this text. `null` means that text before it is missing. */
export function addDraftPart(drafts: readonly AnswerDraft[], part: AnswerDraft): AnswerDraft[] | null {
  const others = drafts.filter((draft) => draft.call_id !== part.call_id);
  if (part.offset === 0) return [...others, part];
  const known = drafts.find((draft) => draft.call_id === part.call_id && draft.attempt === part.attempt);
  // The server counts code points.
  if (!known || [...known.text].length !== part.offset) return null;
  return drafts.map((draft) => (draft === known ? { ...known, text: known.text + part.text } : draft));
}
