import { i18n } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { hasEnded, type Run, recentRunsQuery, runQuery, runsQuery } from "@/shared/api/runs";
import { formatAgo, formatCount, formatMs, formatUsd } from "@/shared/format/numbers";
import { runStatusLabel } from "@/shared/format/run-labels";
import { expectedSteps } from "@/shared/minimap/geometry";
import { MinimapThumbnail } from "@/shared/minimap/minimap-line";
import { useDebounced, useIsVisible, useNow } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import "./recent-runs.css";

interface RecentRunsProps {
  /** Text that the listed questions contain. Empty lists all runs. */
  search: string;
  onSearch(text: string): void;
  onExample(question: string): void;
}

const EXAMPLE = msg`Which of these papers report a result on more than one benchmark, and what were the results?`;

/** The latest runs, with their minimaps in the same response, and the way to all runs. */
export function LatestRuns({ search, onSearch, onExample }: RecentRunsProps) {
  const debouncedSearch = useDebounced(search.trim(), 250);
  const runs = useQuery({ ...recentRunsQuery(debouncedSearch), placeholderData: keepPreviousData });
  if (!debouncedSearch && runs.data?.items.length === 0) return <GettingStarted onExample={onExample} />;
  return (
    <RunSection search={search} onSearch={onSearch}>
      <Loaded
        query={runs}
        label={t`the runs`}
        empty={({ items }) => (items.length === 0 ? <NothingFound search={debouncedSearch} /> : null)}
      >
        {({ items, next }) => (
          <>
            <ul>
              {items.map((run) => (
                <RunRow key={run.id} run={run} />
              ))}
            </ul>
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

/** All runs, page by page. */
export function RecentRuns({ search, onSearch, onExample }: RecentRunsProps) {
  const debouncedSearch = useDebounced(search.trim(), 250);
  const runs = useInfiniteQuery(runsQuery(debouncedSearch));
  if (!debouncedSearch && runs.data?.pages[0]?.items.length === 0) return <GettingStarted onExample={onExample} />;
  return (
    <RunSection search={search} onSearch={onSearch}>
      <Loaded
        query={runs}
        label={t`the runs`}
        empty={({ pages }) => (pages[0]?.items.length === 0 ? <NothingFound search={debouncedSearch} /> : null)}
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
    </RunSection>
  );
}

function NothingFound({ search }: { search: string }) {
  return (
    <p className="quiet">
      <Trans>No question contains “{search}”.</Trans>
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
          placeholder={t`Search questions`}
          value={search}
          onChange={(event) => onSearch(event.target.value)}
        />
      </div>
      {children}
    </section>
  );
}

function RunRow({ run }: { run: Run }) {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const isVisible = useIsVisible(element);
  const isIncluded = run.minimap != null;
  const detail = useQuery({
    ...runQuery(run.id),
    enabled: isVisible && !isIncluded,
    staleTime: hasEnded(run) ? 600_000 : 4_000,
  });
  const marks = run.minimap ?? detail.data?.step_marks;
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
          {marks !== undefined && <RunMinimap run={run} marks={marks} />}
          {detail.error && marks === undefined && (
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

function GettingStarted({ onExample }: Pick<RecentRunsProps, "onExample">) {
  return (
    <section className="recent first" aria-label={t`Getting started`}>
      <h2 className="label">
        <Trans>How it works</Trans>
      </h2>
      <ol>
        <li>
          <Trans>
            <b>Drop a folder of documents on the form above.</b> Supported formats are PDF, HTML, Markdown, plain text
            and Word. The documents stay on this machine.
          </Trans>
        </li>
        <li>
          <Trans>
            <b>Ask a question that takes research.</b> For example:
          </Trans>{" "}
          <button type="button" className="linkish" onClick={() => onExample(i18n._(EXAMPLE))}>
            {i18n._(EXAMPLE)}
          </button>
        </li>
        <li>
          <Trans>
            <b>Watch the run, send it messages, or come back later.</b> Runs continue when you close this page. Each
            sentence of the report shows the passage that supports it, or is marked as unsupported.
          </Trans>
        </li>
      </ol>
      <div className="first-line">
        <MinimapThumbnail marks="npprsmvpsrmvpsmvprfrmvpsrmmvprmvpsrsmvpcmvprmvw" steps={48} height={44} />
        <p className="quiet">
          <Trans>
            The step minimap of a run. Marks above the line are plan, search and read steps. Marks below it are memory,
            verification and report steps.
          </Trans>
        </p>
      </div>
    </section>
  );
}
