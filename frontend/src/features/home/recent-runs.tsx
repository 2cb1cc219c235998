import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { hasEnded, type Run, recentRunsQuery, runName } from "@/shared/api/runs";
import { formatAgo, formatCount, formatMs, formatUsd } from "@/shared/format/numbers";
import { runStatusLabel } from "@/shared/format/run-labels";
import { expectedSteps } from "@/shared/minimap/geometry";
import { MinimapThumbnail } from "@/shared/minimap/minimap-line";
import { Link } from "@/shared/routing/routing";
import { MarkedText } from "@/shared/runs/marked-text";
import { useDebounced, useNow } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Loaded } from "@/shared/ui/loaded";
import { GettingStarted } from "./getting-started";
import "./recent-runs.css";

interface RecentRunsProps {
  /** Words that the listed runs contain. Empty lists the pinned and the latest runs. */
  search: string;
  onSearch(text: string): void;
  onExample(question: string): void;
}

/** Some pinned runs and the latest ones, with their minimaps in the same response, and the way to all runs. */
export function LatestRuns({ search, onSearch, onExample }: RecentRunsProps) {
  const debouncedSearch = useDebounced(search.trim(), 250);
  const runs = useQuery({ ...recentRunsQuery(debouncedSearch), placeholderData: keepPreviousData });
  const isEmpty = runs.data?.items.length === 0 && !runs.data.pinned?.length;
  if (!debouncedSearch && isEmpty) return <GettingStarted onExample={onExample} />;
  return (
    <RunSection search={search} onSearch={onSearch}>
      <Loaded
        query={runs}
        label={t`the runs`}
        empty={({ items }) =>
          debouncedSearch && items.length === 0 ? <NothingFound search={debouncedSearch} /> : null
        }
      >
        {({ pinned, items, next }) => (
          <>
            {pinned && pinned.length > 0 && (
              <>
                <h3 className="recent-group">
                  <Trans>Pinned</Trans>
                </h3>
                <RunRows runs={pinned} />
                <h3 className="recent-group">
                  <Trans>Latest</Trans>
                </h3>
              </>
            )}
            <RunRows runs={items} />
            {next && (
              <p>
                <Link to="/runs" search={debouncedSearch ? { q: debouncedSearch } : {}}>
                  <Trans>All runs</Trans>
                </Link>
              </p>
            )}
          </>
        )}
      </Loaded>
    </RunSection>
  );
}

function NothingFound({ search }: { search: string }) {
  return (
    <p className="quiet">
      <Trans>No run contains “{search}”.</Trans>
    </p>
  );
}

interface RunSectionProps extends Pick<RecentRunsProps, "search" | "onSearch"> {
  children: ReactNode;
}

function RunSection({ search, onSearch, children }: RunSectionProps) {
  useHotkeys([{ keys: "/", description: t`Search runs`, run: () => document.getElementById("run-search")?.focus() }]);
  return (
    <section className="recent" aria-label={t`Runs`}>
      <div className="recent-head">
        <h2 className="label">
          <Trans>Runs</Trans>
        </h2>
        <input
          dir="auto"
          id="run-search"
          type="search"
          className="field"
          aria-label={t`Search runs`}
          placeholder={t`Search runs`}
          value={search}
          onChange={(event) => onSearch(event.target.value)}
        />
      </div>
      {children}
    </section>
  );
}

function RunRows({ runs }: { runs: readonly Run[] }) {
  return (
    <ul>
      {runs.map((run) => (
        <RunRow key={run.id} run={run} />
      ))}
    </ul>
  );
}

function RunRow({ run }: { run: Run }) {
  const now = useNow(30_000);
  const { label, tone } = runStatusLabel(run);
  const name = runName(run);
  const marks = run.given_title ? run.match?.title_marks : run.match?.question_marks;
  return (
    <li>
      <Link to="/runs/$runId" params={{ runId: run.id }} className="run-row">
        <span dir="auto" className="run-row-question">
          <MarkedText text={name} marks={marks ?? []} />
        </span>
        <span className={`pill ${tone}`}>
          <i />
          {label}
        </span>
        <span className="run-row-line">{run.minimap != null && <RunMinimap run={run} marks={run.minimap} />}</span>
        <span className="run-row-facts num">
          <span>{formatAgo(run.created_at, now)}</span>
          <span>{plural(run.usage.turns, { one: "# turn", other: "# turns" })}</span>
          {run.thread_runs > 1 && (
            <span>
              {plural(run.thread_runs, { one: "# question in its thread", other: "# questions in its thread" })}
            </span>
          )}
          <span>{plural(run.last_seq, { one: "# step", other: "# steps" })}</span>
          {run.usage.seconds > 0 && <span>{formatMs(run.usage.seconds * 1000)}</span>}
          {run.usage.cost_usd > 0 && <span>{formatUsd(run.usage.cost_usd)}</span>}
          {run.usage.tokens > 0 && (
            <span>
              <Trans>{formatCount(run.usage.tokens)} tokens</Trans>
            </span>
          )}
        </span>
      </Link>
    </li>
  );
}

/** `marks` are those of each step, or of steps at equal distances. */
function RunMinimap({ run, marks }: { run: Run; marks: string }) {
  const count = Math.max(run.last_seq, marks.length);
  const share = count > 0 ? marks.length / count : 1;
  return (
    <MinimapThumbnail
      marks={marks}
      count={count}
      steps={Math.round(expectedSteps(count, run.budget.max_turns, hasEnded(run)) * share)}
    />
  );
}
