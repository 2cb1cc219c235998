import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { hasEnded, type Run, type RunDetail, runQuery, runsQuery } from "@/shared/api/runs";
import { formatAgo, formatCount, formatMs, formatUsd } from "@/shared/format/numbers";
import { runStatusLabel } from "@/shared/format/run-labels";
import { expectedSteps } from "@/shared/minimap/geometry";
import { MinimapThumbnail } from "@/shared/minimap/minimap-line";
import { useDebounced, useIsVisible, useNow } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import { GettingStarted } from "./getting-started";
import "./recent-runs.css";

interface RecentRunsProps {
  /** Text that the listed questions contain. Empty lists all runs. */
  search: string;
  onSearch(text: string): void;
  onExample(question: string): void;
}

export function RecentRuns({ search, onSearch, onExample }: RecentRunsProps) {
  const debouncedSearch = useDebounced(search.trim(), 250);
  const runs = useInfiniteQuery(runsQuery(debouncedSearch));
  useHotkeys([{ keys: "/", description: t`Search runs`, run: () => document.getElementById("run-search")?.focus() }]);

  if (!debouncedSearch && runs.data?.pages[0]?.items.length === 0) return <GettingStarted onExample={onExample} />;
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
          placeholder={t`Search questions`}
          value={search}
          onChange={(event) => onSearch(event.target.value)}
        />
      </div>
      <Loaded
        query={runs}
        label={t`the runs`}
        empty={({ pages }) =>
          pages[0]?.items.length === 0 ? (
            <p className="quiet">
              <Trans>No question contains “{debouncedSearch}”.</Trans>
            </p>
          ) : null
        }
      >
        {({ pages }) => (
          <ul>
            {pages
              .flatMap(({ items }) => items)
              .map((run) => (
                <RunRow key={run.id} run={run} />
              ))}
          </ul>
        )}
      </Loaded>
      <LoadMore query={runs} text={t`Earlier runs`} />
    </section>
  );
}

function RunRow({ run }: { run: Run }) {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const isVisible = useIsVisible(element);
  const detail = useQuery({ ...runQuery(run.id), enabled: isVisible, staleTime: hasEnded(run) ? 600_000 : 4_000 });
  const now = useNow(30_000);
  const { label, tone } = runStatusLabel(run);
  return (
    <li ref={setElement}>
      <Link to="/runs/$runId" params={{ runId: run.id }} className="run-row">
        <span dir="auto" className="run-row-question">
          {run.question}
        </span>
        <span className={`pill ${tone}`}>
          <i />
          {label}
        </span>
        <span className="run-row-line">
          {detail.data && <RunMinimap run={detail.data} />}
          {detail.error && !detail.data && (
            <span className="quiet">
              <Trans>steps could not be loaded</Trans>
            </span>
          )}
        </span>
        <span className="run-row-facts num">
          <span>{formatAgo(run.created_at, now)}</span>
          <span>{plural(run.usage.turns, { one: "# turn", other: "# turns" })}</span>
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

function RunMinimap({ run }: { run: RunDetail }) {
  return (
    <MinimapThumbnail
      marks={run.step_marks}
      steps={expectedSteps(run.step_marks.length, run.budget.max_turns, hasEnded(run))}
    />
  );
}
