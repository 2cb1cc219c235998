/** The one way to the server: typed requests, the session's CSRF token on writes, and problems as errors. */

import createClient, { type Middleware } from "openapi-fetch";
import { suspectAway } from "./reach";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** A refusal in the server's own words. `field` and `remedy` say what to change. Status 0: the server was not reached. */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly field: string | null = null,
    readonly remedy: string | null = null,
  ) {
    super(detail || title);
    this.name = "ApiProblem";
  }
}

/** A part of the web UI itself that could not be fetched. */
export class MissingCode extends ApiProblem {
  constructor() {
    super(
      0,
      "This view could not be loaded",
      "The server cannot be reached, or it was updated after this page was opened.",
      null,
      "Try again, or reload the page. What you have typed is kept.",
    );
    this.name = "MissingCode";
  }
}

let csrfToken: string | null = null;

export function rememberCsrfToken(token: string | null): void {
  csrfToken = token;
}

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

const csrf: Middleware = {
  onRequest({ request }) {
    if (csrfToken && !SAFE.has(request.method)) request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
};

export const api = createClient<paths>({
  baseUrl: globalThis.location?.origin ?? "",
  credentials: "same-origin",
  // Looked up at each call: tests put theirs in place after this module was read.
  fetch: (request) => globalThis.fetch(request),
});
api.use(csrf);

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A problem document, or whatever else came in its place, as an error. */
export function problemFrom(status: number, body: unknown): ApiProblem {
  const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const title = textOf(fields.title) || `The server answered ${status}`;
  return new ApiProblem(
    status,
    title,
    textOf(fields.detail),
    textOf(fields.field) || null,
    textOf(fields.remedy) || null,
  );
}

/** Not reached at all, and what proxies and the server itself answer while a part is away. */
const AWAY = new Set([0, 502, 503, 504]);

interface Outcome<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer's data. Throws ApiProblem for every refusal and for a server that cannot be reached. */
export async function unwrap<T>(request: Promise<Outcome<T>>): Promise<T> {
  let outcome: Outcome<T>;
  try {
    outcome = await request;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    suspectAway();
    throw new ApiProblem(0, "The server cannot be reached", "Nothing is lost: the run goes on without this page.");
  }
  if (!outcome.response.ok) {
    if (AWAY.has(outcome.response.status)) suspectAway();
    throw problemFrom(outcome.response.status, outcome.error);
  }
  return outcome.data as T;
}

/** Whether the error says that the server, or what it needs, is away. The banner says so for the whole page. */
export function isAway(error: unknown): boolean {
  return error instanceof ApiProblem && AWAY.has(error.status);
}

/** Whether the server said that there is no such thing; any other failure says nothing about that. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 404;
}

/** Worth asking again by itself: the server was away or stumbled. A refusal stays a refusal. */
export function isPassing(error: unknown): boolean {
  return error instanceof ApiProblem && (error.status === 0 || error.status >= 500);
}
