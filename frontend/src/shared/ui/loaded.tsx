/**
 * Shows the result of a query: what is loading and what it waits for, the error with a retry, that there is nothing, or
 * the data. An error never looks like an empty result, and data that could not be refreshed is marked as stale. Every
 * view shows its queries through this module.
 */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type ReactNode, useState } from "react";
import { isServerUnavailable } from "../api/client";
import { useServerOutage } from "../api/server-status";
import { formatDuration } from "../format/numbers";
import { useNow } from "./hooks";
import { ProblemNote } from "./problem-note";

/** The part of a query result that is needed to show it. */
export interface Loadable<T> {
  data: T | undefined;
  error: unknown;
  /** `idle` means that nothing was requested. */
  fetchStatus: "fetching" | "paused" | "idle";
  refetch(): unknown;
  /** Of a list in pages: `LoadMore` shows that its next page failed. */
  isFetchNextPageError?: boolean;
  /** Why the latest attempt failed, while another attempt follows. `null` means that none has failed. */
  failureReason?: unknown;
}

interface LoadedProps<T> {
  query: Loadable<T>;
  /** What is loaded, as in "Loading the run…". */
  label: string;
  /**
   * Return what to show if there is nothing to show: an `EmptyState` that explains the next step. `null` means that
   * there is something.
   */
  empty?: (data: T) => ReactNode;
  /** The view fills the page: its loading state and error are centered. */
  fullPage?: boolean;
  children: (data: T) => ReactNode;
}

export function Loaded<T>({ query, label, empty, fullPage = false, children }: LoadedProps<T>) {
  const { data, error, fetchStatus } = query;
  const problem = error && !query.isFetchNextPageError ? <Failure query={query} /> : null;
  if (data === undefined) {
    const placeholder =
      problem ?? (fetchStatus === "idle" ? null : <LoadingText label={label} failureReason={query.failureReason} />);
    return fullPage && placeholder ? <main className="shell-problem">{placeholder}</main> : placeholder;
  }
  return (
    <>
      {problem}
      {empty?.(data) ?? children(data)}
    </>
  );
}

/** Shows only the error of a query, where its data completes something that is already visible. */
export function Failure({ query }: { query: Pick<Loadable<unknown>, "data" | "error" | "refetch"> }) {
  const isServerDown = useServerOutage() !== null;
  const stale = query.data !== undefined;
  // During an outage the banner shows it once, and everything in view is reloaded afterwards.
  if (stale && isServerDown && isServerUnavailable(query.error)) return null;
  return <ProblemNote error={query.error} onRetry={query.refetch} isStale={stale} />;
}

/** Seconds after which a loading text shows what it waits for and how long it has lasted. */
const SLOW_SECONDS = 3;

function LoadingText({ label, failureReason }: { label: string; failureReason: unknown }) {
  const now = useNow(1_000);
  const [startedAt] = useState(now);
  const seconds = (now - startedAt) / 1000;
  return (
    <div className="quiet" role="status" data-loading="">
      <p>
        <Trans>Loading {label}…</Trans>
        {seconds >= SLOW_SECONDS && <span className="num"> {formatDuration(seconds)}</span>}
      </p>
      {seconds >= SLOW_SECONDS && <p>{describeWait(failureReason)}</p>}
    </div>
  );
}

/** Return what a slow query waits for. */
function describeWait(failureReason: unknown): string {
  if (failureReason instanceof Error) return t`The last attempt failed: ${failureReason.message} Trying again.`;
  return t`Waiting for the server to respond.`;
}

type DataOf<Q> = Q extends { data: infer T } ? Exclude<T, undefined> : never;

/** Combine several queries into one. It has data when all of them have data, and it fails with the first that fails. */
export function combineQueries<Q extends Record<string, Loadable<unknown>>>(
  queries: Q,
): Loadable<{ [K in keyof Q]: DataOf<Q[K]> }> {
  const results = Object.values(queries);
  const isComplete = results.every(({ data }) => data !== undefined);
  const data = Object.fromEntries(Object.entries(queries).map(([name, query]) => [name, query.data]));
  return {
    data: isComplete ? (data as { [K in keyof Q]: DataOf<Q[K]> }) : undefined,
    error: results.find(({ error }) => error)?.error ?? null,
    fetchStatus: results.find(({ fetchStatus }) => fetchStatus !== "idle")?.fetchStatus ?? "idle",
    failureReason: results.find(({ failureReason }) => failureReason)?.failureReason ?? null,
    refetch: () => Promise.all(results.filter(({ error }) => error).map((query) => query.refetch())),
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

/** The end of a list in pages: a button for the next page, or why that page could not be loaded. */
export function LoadMore({ query, text }: MoreProps) {
  if (query.isFetchNextPageError) return <ProblemNote error={query.error} onRetry={query.fetchNextPage} />;
  if (!query.hasNextPage) return null;
  return (
    <button type="button" className="btn" disabled={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
      {query.isFetchingNextPage ? t`Loading…` : text}
    </button>
  );
}
