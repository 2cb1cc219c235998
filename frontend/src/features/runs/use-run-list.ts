import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { hasEnded, latestRunsQuery, type Run, type RunListFilter, runListQuery } from "@/shared/api/runs";

/** Number of runs at the start of the list that are fetched regularly. */
const LATEST_COUNT = 30;

/** Return whether a run that was changed in this page still belongs to a list. */
export function passesFilter(run: Run, filter: RunListFilter): boolean {
  if ((run.archived_at != null) !== (filter.archived ?? false)) return false;
  if (filter.pinned && run.pinned_at == null) return false;
  if (filter.tag && !run.tags.includes(filter.tag)) return false;
  return true;
}

/** Return the loaded runs with the state of the latest ones, and those that are newer than all of them. */
export function mergeRuns(loaded: readonly Run[], latest: readonly Run[]): Run[] {
  const byId = new Map(latest.map((run) => [run.id, run]));
  const known = new Set(loaded.map((run) => run.id));
  const newest = loaded[0]?.created_at ?? "";
  const added = latest.filter((run) => !known.has(run.id) && run.created_at >= newest);
  return [...added, ...loaded.map((run) => byId.get(run.id) ?? run)];
}

function countUnindexed(pages: readonly { unindexed_runs?: number }[]): number {
  return pages[0]?.unindexed_runs ?? 0;
}

/** The runs of a list: pages as they are loaded, with the state of the latest runs kept up to date. */
export function useRunList(filter: RunListFilter) {
  const pages = useInfiniteQuery(runListQuery(filter));
  const isLoaded = pages.data !== undefined;
  const latest = useQuery({ ...latestRunsQuery(filter, LATEST_COUNT), enabled: isLoaded });
  const runs = useMemo(() => {
    const loaded = pages.data ? pages.data.pages.flatMap(({ items }) => items) : [];
    const start = latest.data ? latest.data.items : [];
    return mergeRuns(loaded, start).filter((run) => passesFilter(run, filter));
  }, [pages.data, latest.data, filter]);
  const activeCount = useMemo(() => runs.filter((run) => !hasEnded(run)).length, [runs]);
  const unindexed = pages.data ? countUnindexed(pages.data.pages) : 0;
  return { pages, latest, runs, activeCount, unindexed };
}
