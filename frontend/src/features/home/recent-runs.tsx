import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { hasEnded, type Run, type RunDetail, runQuery, runsQuery } from "@/shared/api/runs";
import { ago, count, counted, money, took } from "@/shared/format/numbers";
import { statusWording } from "@/shared/format/run-words";
import { expectedSteps } from "@/shared/horizon/geometry";
import { HorizonThumb } from "@/shared/horizon/horizon";
import { useNow, useSeen, useSettled } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Loaded, More } from "@/shared/ui/loaded";
import "./recent-runs.css";

interface RecentRunsProps {
  onExample(question: string): void;
}

const EXAMPLE = "Which of these papers report a result on more than one benchmark, and what were the results?";

export function RecentRuns({ onExample }: RecentRunsProps) {
  const [search, setSearch] = useState("");
  const settled = useSettled(search.trim(), 250);
  const runs = useInfiniteQuery(runsQuery(settled));
  useHotkeys([{ keys: "/", does: "Search runs", run: () => document.getElementById("run-search")?.focus() }]);

  if (!settled && runs.data?.pages[0]?.items.length === 0) return <NoRunsYet onExample={onExample} />;
  return (
    <section className="recent" aria-label="Runs">
      <div className="recent-head">
        <h2 className="label">Runs</h2>
        <input
          id="run-search"
          type="search"
          className="field"
          aria-label="Search runs"
          placeholder="Search questions"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
      </div>
      <Loaded
        query={runs}
        what="the runs"
        empty={({ pages }) =>
          pages[0]?.items.length === 0 ? <p className="quiet">No question contains “{settled}”.</p> : null
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
      <More query={runs} text="Earlier runs" />
    </section>
  );
}

function RunRow({ run }: { run: Run }) {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const seen = useSeen(element);
  const detail = useQuery({ ...runQuery(run.id), enabled: seen, staleTime: hasEnded(run) ? 600_000 : 4_000 });
  const now = useNow(30_000);
  const { word, tone } = statusWording(run);
  return (
    <li ref={setElement}>
      <Link to="/runs/$runId" params={{ runId: run.id }} className="run-row">
        <span className="run-row-question">{run.question}</span>
        <span className={`pill ${tone}`}>
          <i />
          {word}
        </span>
        <span className="run-row-line">
          {detail.data && <Thumb run={detail.data} />}
          {detail.error && !detail.data && <span className="quiet">its steps could not be loaded</span>}
        </span>
        <span className="run-row-facts num">
          <span>{ago(run.created_at, now)}</span>
          <span>{counted(run.spent.turns, "turn")}</span>
          <span>{counted(run.last_seq, "step")}</span>
          {run.spent.seconds > 0 && <span>{took(run.spent.seconds * 1000)}</span>}
          {run.spent.usd > 0 && <span>{money(run.spent.usd)}</span>}
          {run.spent.tokens > 0 && <span>{count(run.spent.tokens)} tokens</span>}
        </span>
      </Link>
    </li>
  );
}

function Thumb({ run }: { run: RunDetail }) {
  return <HorizonThumb marks={run.marks} steps={expectedSteps(run.marks.length, run.budget.turns, hasEnded(run))} />;
}

function NoRunsYet({ onExample }: RecentRunsProps) {
  return (
    <section className="recent first" aria-label="Getting started">
      <h2 className="label">How it goes</h2>
      <ol>
        <li>
          <b>Drop a folder of documents on the box above.</b> PDF, HTML, Markdown, plain text and Word are read; they
          stay on this machine.
        </li>
        <li>
          <b>Ask something that takes reading.</b> For example:{" "}
          <button type="button" className="linkish" onClick={() => onExample(EXAMPLE)}>
            {EXAMPLE}
          </button>
        </li>
        <li>
          <b>Watch, steer, or come back later.</b> Closing this page stops nothing. Each sentence of the report shows
          the passage it stands on, and says so when there is none.
        </li>
      </ol>
      <div className="first-line">
        <HorizonThumb marks="npprsmvpsrmvpsmvprfrmvpsrmmvprmvpsrsmvpcmvprmvw" steps={48} height={44} />
        <p className="quiet">A run's horizon. Above the line it reaches out: plan, search, read. Below, it takes in.</p>
      </div>
    </section>
  );
}
