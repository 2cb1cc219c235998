/** The API client: typed requests, the session's CSRF token on writes, and problem documents as errors. */

import { t } from "@lingui/core/macro";
import createClient, { type Middleware } from "openapi-fetch";
import type { Problem } from "../texts/problem-texts";
import { takeEarlyResponse } from "./early-responses";
import type { components, paths } from "./schema";
import { checkServer } from "./server-status";

export type Schemas = components["schemas"];

/**
 * A problem document of the server. `field` and `remedy` say what to change. Status 0 means that the server was not
 * reached.
 */
export class ProblemError extends Error {
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

/** The code of a view could not be loaded. `hasUnsavedInput` means that a reload would lose typed text. */
export class ViewLoadError extends ProblemError {
  constructor(hasUnsavedInput = false) {
    super(
      0,
      t`This view could not be loaded`,
      t`The server cannot be reached, or it was updated after this page was opened.`,
      null,
      hasUnsavedInput
        ? t`Try again. Before you reload the page, copy what you typed: a reload loses it.`
        : t`Try again, or reload the page. Your input is saved.`,
    );
    this.name = "MissingCode";
  }
}

let csrfToken: string | null = null;

export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

const csrf: Middleware = {
  onRequest({ request }) {
    if (csrfToken && !SAFE_METHODS.has(request.method)) request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
};

function takeEarly({ method, url }: Request): Promise<Response> | undefined {
  return method === "GET" ? takeEarlyResponse(url.slice(location.origin.length)) : undefined;
}

export const api = createClient<paths>({
  baseUrl: globalThis.location?.origin ?? "",
  credentials: "same-origin",
  // `fetch` is looked up at each call, because tests replace it after this module was loaded.
  fetch: (request) => takeEarly(request) ?? globalThis.fetch(request),
});
api.use(csrf);

function stringOrEmpty(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Return an error for a problem document, or for another body that was received instead. */
export async function parseProblem(status: number, body: unknown): Promise<ProblemError> {
  const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const received = {
    title: stringOrEmpty(fields.title) || t`The server responded with status ${status}`,
    detail: stringOrEmpty(fields.detail),
    remedy: stringOrEmpty(fields.remedy),
    texts: typeof fields.texts === "object" && fields.texts !== null ? (fields.texts as ProblemTexts) : {},
  };
  const { title, detail, remedy } = await translateProblem(status, received);
  return new ProblemError(status, title, detail, stringOrEmpty(fields.field) || null, remedy || null);
}

type ProblemTexts = Readonly<Record<string, Schemas["ProblemTextOut"] | undefined>>;

async function translateProblem(status: number, problem: Problem): Promise<Omit<Problem, "texts">> {
  try {
    const { sayProblem } = await import("../texts/problem-texts");
    return sayProblem(status, problem);
  } catch {
    // The server that rejected the request may be unable to send this code, too. Its English texts say the same.
    return problem;
  }
}

/** Statuses of requests that reached no server, and of proxies or servers whose dependencies are unavailable. */
const UNAVAILABLE_STATUSES = new Set([0, 502, 503, 504]);

interface ApiResult<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Return the data of the response. Throws ProblemError if the server rejects the request or cannot be reached. */
export async function unwrap<T>(request: Promise<ApiResult<T>>): Promise<T> {
  let result: ApiResult<T>;
  try {
    result = await request;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    checkServer();
    throw new ProblemError(0, t`The server cannot be reached`, t`No data is lost. Runs continue on the server.`);
  }
  if (!result.response.ok) {
    if (UNAVAILABLE_STATUSES.has(result.response.status)) checkServer();
    throw await parseProblem(result.response.status, result.error);
  }
  return result.data as T;
}

/** Return whether the server, or a service that it needs, is unavailable. The banner shows this for the whole page. */
export function isServerUnavailable(error: unknown): boolean {
  return error instanceof ProblemError && UNAVAILABLE_STATUSES.has(error.status);
}

/** Return whether the server responded that the object does not exist. Other errors do not imply that. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ProblemError && error.status === 404;
}

/**
 * Return whether a retry can help: the server was unreachable or had an internal error. A rejected request stays
 * rejected.
 */
export function isRetryable(error: unknown): boolean {
  return error instanceof ProblemError && (error.status === 0 || error.status >= 500);
}
