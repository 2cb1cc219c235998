/**
 * The one way to show what a query gives: what is waited for, what failed and how to try again, that there is nothing,
 * or the data. A failure never looks like an empty answer, and data that could not be renewed says so.
 */

import { type ReactNode, useState } from "react";
import { isAway } from "../api/client";
import { useAway } from "../api/reach";
import { span } from "../format/numbers";
import { useNow } from "./hooks";
import { ProblemNote } from "./problem-note";

/** What of a query's result is needed to show it. */
export interface Loadable<T> {
  data: T | undefined;
  error: unknown;
  /** `idle`: nobody has asked for it, so nothing is waited for. */
  fetchStatus: "fetching" | "paused" | "idle";
  refetch(): unknown;
  /** Of a list in pages: `More` shows that its next page failed. */
  isFetchNextPageError?: boolean;
}

interface LoadedProps<T> {
  query: Loadable<T>;
  /** What is loaded, as in "Loading the run…". */
  what: string;
  /** What to show instead of the data where there is nothing to show. `null`: there is something. */
  empty?: (data: T) => ReactNode;
  /** It is a whole view: what is waited for or failed stands in the middle. */
  framed?: boolean;
  children: (data: T) => ReactNode;
}

export function Loaded<T>({ query, what, empty, framed = false, children }: LoadedProps<T>) {
  const { data, error, fetchStatus } = query;
  const problem = error && !query.isFetchNextPageError ? <Failure query={query} /> : null;
  if (data === undefined) {
    const shown = problem ?? (fetchStatus === "idle" ? null : <Waiting what={what} />);
    return framed && shown ? <main className="shell-problem">{shown}</main> : shown;
  }
  return (
    <>
      {problem}
      {empty?.(data) ?? children(data)}
    </>
  );
}

/** Only why a query failed, for a place where its data fills in what stands there already. */
export function Failure({ query }: { query: Pick<Loadable<unknown>, "data" | "error" | "refetch"> }) {
  const away = useAway() !== null;
  const stale = query.data !== undefined;
  // While the server is away the banner says so once, and everything in view is fetched anew when it is back.
  if (stale && away && isAway(query.error)) return null;
  return <ProblemNote error={query.error} onRetry={query.refetch} stale={stale} />;
}

/** Seconds after which a wait says how long it has lasted. */
const LONG = 3;

function Waiting({ what }: { what: string }) {
  const now = useNow(1_000);
  const [from] = useState(now);
  const seconds = (now - from) / 1000;
  return (
    <p className="quiet" role="status">
      Loading {what}…{seconds >= LONG && <span className="num"> {span(seconds)}</span>}
    </p>
  );
}

type DataOf<Q> = Q extends { data: infer T } ? Exclude<T, undefined> : never;

/** Several queries as one: its data is there when all of theirs is, and it fails with the first that fails. */
export function together<Q extends Record<string, Loadable<unknown>>>(
  queries: Q,
): Loadable<{ [K in keyof Q]: DataOf<Q[K]> }> {
  const all = Object.values(queries);
  const complete = all.every(({ data }) => data !== undefined);
  const data = Object.fromEntries(Object.entries(queries).map(([name, query]) => [name, query.data]));
  return {
    data: complete ? (data as { [K in keyof Q]: DataOf<Q[K]> }) : undefined,
    error: all.find(({ error }) => error)?.error ?? null,
    fetchStatus: all.find(({ fetchStatus }) => fetchStatus !== "idle")?.fetchStatus ?? "idle",
    refetch: () => Promise.all(all.filter(({ error }) => error).map((query) => query.refetch())),
  };
}

interface MoreProps {
  query: {
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    isFetchNextPageError: boolean;
    error: unknown;
    fetchNextPage(): unknown;
  };
  text: string;
}

/** The end of a list in pages: a button for the next one, or why that could not be fetched. */
export function More({ query, text }: MoreProps) {
  if (query.isFetchNextPageError) return <ProblemNote error={query.error} onRetry={query.fetchNextPage} />;
  if (!query.hasNextPage) return null;
  return (
    <button type="button" className="btn" disabled={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
      {query.isFetchingNextPage ? "Loading…" : text}
    </button>
  );
}
