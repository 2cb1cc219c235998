import { queryOptions } from "@tanstack/react-query";
import { api, setCsrfToken, unwrap } from "./client";

const SESSION_KEY = ["session"];

let tenant: string | null = null;

/** Return the name of the tenant whose session is open in this page. `null` means that it is not known yet. */
export function sessionTenant(): string | null {
  return tenant;
}

export const sessionQuery = queryOptions({
  queryKey: SESSION_KEY,
  queryFn: async ({ client, signal }) => {
    const session = await unwrap(api.GET("/api/v1/session", { signal }));
    setCsrfToken(session.csrf_token);
    // After a session has ended, another tenant may sign in in the same tab. Data loaded for the first tenant must not
    // be shown to the second.
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
  setCsrfToken(null);
}
