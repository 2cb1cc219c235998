import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

export function threadQuery(threadId: string) {
  return queryOptions({
    queryKey: ["thread", threadId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/threads/{thread_id}", { params: { path: { thread_id: threadId } }, signal })),
  });
}
