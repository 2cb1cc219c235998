import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import {
  hasEnded,
  hasPinnedFirst,
  hasThreads,
  latestRunsQuery,
  orderOf,
  type Run,
  type RunListFilter,
  runListQuery,
} from "@/shared/api/runs";

/** Number of runs at the start of the list that are fetched regularly. */
const LATEST_COUNT = 30;

/** Return whether a run that was changed in this page still belongs to a list. */
export function passesFilter(run: Run, filter: RunListFilter): boolean {
  if ((run.archived_at != null) !== (filter.archived ?? false)) return false;
  if (filter.pinned && run.pinned_at == null) return false;
  if (filter.tag && !run.tags.includes(filter.tag)) return false;
  return true;
}

/** Return the loaded runs with the state of the latest ones, and in a list of the newest those that are newer than all. */
export function mergeRuns(loaded: readonly Run[], latest: readonly Run[], isNewestFirst = true): Run[] {
  const byId = new Map(latest.map((run) => [run.id, run]));
  const known = new Set(loaded.map((run) => run.id));
  const newest = loaded[0]?.created_at ?? "";
  const added = isNewestFirst ? latest.filter((run) => !known.has(run.id) && run.created_at >= newest) : [];
  return [...added, ...loaded.map((run) => byId.get(run.id) ?? run)];
}

/** Return each run once, and of each thread only the first one if the first stands for its thread. */
export function withoutDoubles(runs: readonly Run[], isThreadOnce: boolean): Run[] {
  const seen = new Set<string>();
  return runs.filter(({ id, thread_id }) => {
    const key = isThreadOnce ? thread_id : id;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

interface RunPage {
  items: Run[];
  pinned?: Run[];
  has_more_pinned?: boolean;
  unindexed_runs?: number;
  next: string | null;
}

/** Return the runs of a list in order: the pinned ones that stand first, and the others. */
export function arrangeRuns(
  pages: readonly RunPage[],
  latest: RunPage | undefined,
  filter: RunListFilter,
): { pinned: Run[]; others: Run[] } {
  const isNewestFirst = orderOf(filter) === "newest";
  const passing = (runs: Run[]) => runs.filter((run) => passesFilter(run, filter));
  const others = passing(
    mergeRuns(
      pages.flatMap(({ items }) => items),
      latest?.items ?? [],
      isNewestFirst,
    ),
  );
  if (!hasPinnedFirst(filter)) return { pinned: [], others: withoutDoubles(others, hasThreads(filter)) };
  const first = passing(mergeRuns(pages[0]?.pinned ?? [], latest?.pinned ?? []));
  // A run that is pinned or unpinned here goes to the other group at once.
  const all = withoutDoubles([...first, ...others], false).sort((left, right) =>
    right.created_at.localeCompare(left.created_at),
  );
  const pinned = all.filter((run) => run.pinned_at != null);
  const unpinned = all.filter((run) => run.pinned_at == null);
  return { pinned, others: withoutDoubles(unpinned, hasThreads(filter)) };
}

/** Return whether there may be runs between the latest ones and those that were loaded before. */
function hasGap(pages: readonly RunPage[], latest: RunPage | undefined): boolean {
  const loaded = pages[0]?.items;
  if (!loaded || loaded.length === 0 || !latest?.next) return false;
  const known = new Set(loaded.map((run) => run.id));
  return !latest.items.some((run) => known.has(run.id));
}

/**
 * The runs of a list: pages as they are loaded, with the state of the latest runs kept up to date. `isRestored` means
 * that the list is shown as it was left, with the pages that were loaded.
 */
export function useRunList(filter: RunListFilter, isRestored: boolean) {
  const pages = useInfiniteQuery({ ...runListQuery(filter), refetchOnMount: !isRestored });
  const isLoaded = pages.data !== undefined;
  const latest = useQuery({ ...latestRunsQuery(filter, LATEST_COUNT), enabled: isLoaded });
  const loaded = pages.data?.pages;
  const { pinned, others } = useMemo(
    () => arrangeRuns(loaded ?? [], latest.data, filter),
    [loaded, latest.data, filter],
  );
  const isIncomplete = orderOf(filter) === "newest" && hasGap(loaded ?? [], latest.data);
  const { refetch } = pages;
  useEffect(() => {
    if (isIncomplete) refetch();
  }, [isIncomplete, refetch]);
  const activeCount = useMemo(() => others.filter((run) => !hasEnded(run)).length, [others]);
  return {
    pages,
    latest,
    pinned,
    runs: others,
    hasMorePinned: loaded?.[0]?.has_more_pinned ?? false,
    activeCount,
    unindexed: loaded?.[0]?.unindexed_runs ?? 0,
  };
}
