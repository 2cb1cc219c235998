import { queryOptions } from "@tanstack/react-query";
import { api, rememberCsrfToken, unwrap } from "./client";

const SESSION_KEY = ["session"];

let tenant: string | null = null;

/** The tenant whose session this page has, by its name. `null`: not known yet. */
export function sessionTenant(): string | null {
  return tenant;
}

export const sessionQuery = queryOptions({
  queryKey: SESSION_KEY,
  queryFn: async ({ client, signal }) => {
    const session = await unwrap(api.GET("/api/v1/session", { signal }));
    rememberCsrfToken(session.csrf_token);
    // After a session has ended in this tab another tenant's may begin: what was fetched for the first is not theirs.
    if (tenant !== null && tenant !== session.tenant) {
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
    }
    tenant = session.tenant;
    return session;
  },
  staleTime: Number.POSITIVE_INFINITY,
});

export async function signOut(): Promise<void> {
  await unwrap(api.DELETE("/api/v1/session"));
  rememberCsrfToken(null);
}
