import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { presetsQuery } from "@/shared/api/providers";
import { hasThreads, type Run, type RunListFilter } from "@/shared/api/runs";
import { Link } from "@/shared/routing/routing";
import { DeleteDialog } from "@/shared/runs/delete-dialog";
import { TagsDialog } from "@/shared/runs/tags-dialog";
import { useOrganize } from "@/shared/runs/use-organize";
import { Button } from "@/shared/ui/button";
import { EmptyState } from "@/shared/ui/empty-state";
import { combineQueries, Failure, Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { useListPosition } from "./list-position";
import { PassageMatches } from "./passage-matches";
import { RunList } from "./run-list";
import styles from "./runs.module.css";
import { SelectionBar } from "./selection-bar";
import { useRunList } from "./use-run-list";
import { useSelection } from "./use-selection";

/** Number of runs that are shown above passages of documents. */
const MAX_MATCHES = 8;

export interface RunsViewProps {
  filter: RunListFilter;
  /** Whether a search lists all matching runs, and not only the first with passages of documents. */
  showsAll: boolean;
  onShowAll(): void;
  onTag(tag: string): void;
  onClear(): void;
  onAllPinned(): void;
  /** Content if there is no run at all. */
  gettingStarted: ReactNode;
}

/** The runs that pass a filter. A search without other filters also finds passages of documents. */
export function RunsView({ filter, showsAll, onShowAll, onTag, onClear, onAllPinned, gettingStarted }: RunsViewProps) {
  const [restored, setPosition] = useListPosition();
  const { pages, latest, pinned, runs: others, hasMorePinned, unindexed } = useRunList(filter, restored !== null);
  const runs = pinned.length > 0 ? [...pinned, ...others] : others;
  const presets = useQuery({ ...presetsQuery, staleTime: 60_000 });
  const selection = useSelection();
  const organize = useOrganize();
  const [tagging, setTagging] = useState<readonly Run[] | null>(null);
  const [deleting, setDeleting] = useState<readonly Run[] | null>(null);
  const { q, order, ...narrowing } = filter;
  const isFiltered = Object.values(narrowing).some(Boolean);
  const isGrouped = Boolean(q) && !isFiltered && !showsAll;
  const shown = isGrouped ? runs.slice(0, MAX_MATCHES) : runs;
  const hasMore = runs.length > shown.length || pages.hasNextPage;
  const canFetch = !isGrouped && pages.hasNextPage && !pages.isFetchingNextPage && !pages.isFetchNextPageError;
  const selected = runs.filter((run) => selection.has(run.id));
  const compareWith = (run: Run) => selection.set([...selected.slice(-1).map((one) => one.id), run.id]);
  const isEmpty = pages.data !== undefined && runs.length === 0 && !pages.hasNextPage;
  if (isEmpty && !q && !isFiltered) return gettingStarted;
  return (
    <>
      <ProblemNote error={organize.error} />
      <section className={styles.group} aria-label={t`Matching runs`}>
        {(order === "cost" || order === "duration") && (
          <p className="quiet">
            <Trans>Runs that have not ended are left out.</Trans>
          </p>
        )}
        {isGrouped && (
          <h2 className={styles.groupName}>
            <Trans>Runs</Trans>
          </h2>
        )}
        <Loaded
          query={pages}
          label={t`the runs`}
          empty={() => (isEmpty ? <NoRuns filter={filter} onClear={onClear} /> : null)}
        >
          {() => (
            <RunList
              runs={shown}
              presets={presets.data ? presets.data : []}
              pinnedCount={pinned.length}
              onAllPinned={hasMorePinned ? onAllPinned : null}
              hasThreads={hasThreads(filter)}
              restored={restored}
              onPosition={setPosition}
              selection={selection}
              organize={organize}
              onMore={canFetch ? pages.fetchNextPage : null}
              onTag={onTag}
              onTags={setTagging}
              onDelete={setDeleting}
              onCompare={compareWith}
            />
          )}
        </Loaded>
        {isGrouped && hasMore && (
          <Button small onClick={onShowAll}>
            <Trans>Show all runs that match</Trans>
          </Button>
        )}
        {pages.isFetchingNextPage && (
          <p className="quiet" role="status">
            <Trans>Loading earlier runs…</Trans>
          </p>
        )}
        {pages.isFetchNextPageError && <ProblemNote error={pages.error} onRetry={pages.fetchNextPage} />}
        {pages.data && <Failure query={combineQueries({ latest, presets })} />}
        {q && unindexed > 0 && (
          <p className="quiet">
            {plural(unindexed, {
              one: "# run is still to be indexed and was not searched.",
              other: "# runs are still to be indexed and were not searched.",
            })}
          </p>
        )}
      </section>
      {isGrouped && q && <PassageMatches search={q} />}
      <SelectionBar
        runs={selected}
        organize={organize}
        onTags={() => setTagging(selected)}
        onDelete={() => setDeleting(selected)}
        onClear={selection.clear}
      />
      {tagging && <TagsDialog runs={tagging} organize={organize} onClose={() => setTagging(null)} />}
      {deleting && (
        <DeleteDialog runs={deleting} onClose={() => setDeleting(null)} onDeleted={() => selection.clear()} />
      )}
    </>
  );
}

function NoRuns({ filter, onClear }: { filter: RunListFilter; onClear(): void }) {
  const { q, order: _, ...narrowing } = filter;
  const isFiltered = Object.values(narrowing).some(Boolean);
  const clear = (
    <Button onClick={onClear}>
      <Trans>Show all runs</Trans>
    </Button>
  );
  if (q) {
    return (
      <EmptyState title={t`No run contains “${q}”`} action={isFiltered && clear}>
        <Trans>
          All words must occur in the question, the title, the tags or the report, in any form. Try fewer words.
        </Trans>
      </EmptyState>
    );
  }
  if (filter.state === "waiting") {
    return (
      <EmptyState title={t`No run waits for you`} action={clear}>
        <Trans>Runs appear here when they ask a question or need your approval.</Trans>
      </EmptyState>
    );
  }
  if (filter.archived) {
    return (
      <EmptyState title={t`No run is archived`} action={clear}>
        <Trans>An archived run stays complete and is left out of the list. Archive one in its menu.</Trans>
      </EmptyState>
    );
  }
  return (
    <EmptyState title={t`No run passes these filters`} action={clear}>
      <Trans>
        Remove a filter, or <Link to="/">ask a question</Link>.
      </Trans>
    </EmptyState>
  );
}
