import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

export function threadQuery(id: string) {
  return queryOptions({
    queryKey: ["thread", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/threads/{thread_id}", { params: { path: { thread_id: id } }, signal })),
  });
}
