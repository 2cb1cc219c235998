import { queryOptions } from "@tanstack/react-query";
import { api, rememberCsrfToken, unwrap } from "./client";

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }) => {
    const session = await unwrap(api.GET("/api/v1/session", { signal }));
    rememberCsrfToken(session.csrf_token);
    return session;
  },
  staleTime: Number.POSITIVE_INFINITY,
});

export async function signOut(): Promise<void> {
  await unwrap(api.DELETE("/api/v1/session"));
  rememberCsrfToken(null);
}
