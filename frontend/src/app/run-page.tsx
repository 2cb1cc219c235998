import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { OpenQuestions } from "@/features/asking/open-questions";
import { FLOW_NAMES, flowOf } from "@/features/flow/flows";
import { PlanRail } from "@/features/plan/plan-rail";
import { Evidence } from "@/features/report/evidence";
import { FoundSoFar } from "@/features/report/found-so-far";
import { NoReport } from "@/features/report/no-report";
import { ReportView } from "@/features/report/report-view";
import { Family } from "@/features/run/family";
import { HorizonPanel } from "@/features/run/horizon-panel";
import { RunControls } from "@/features/run/run-controls";
import { RunHeader } from "@/features/run/run-header";
import { DigDeeper, SteeringBar } from "@/features/run/steering-bar";
import { ThreadTrail } from "@/features/run/thread-trail";
import { SourcesView } from "@/features/sources/sources-view";
import { Timeline } from "@/features/timeline/timeline";
import { reportQuery } from "@/shared/api/reports";
import { hasEnded, type Run, type RunDetail, runQuery } from "@/shared/api/runs";
import { statusWording } from "@/shared/format/run-words";
import { continuedMarks } from "@/shared/horizon/marks";
import { useRunEvents } from "@/shared/stream/stream-context";
import { useStepLog } from "@/shared/stream/use-step-log";
import { Dialog } from "@/shared/ui/dialog";
import { useMediaQuery } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { ProblemNote } from "@/shared/ui/problem-note";
import { RunTabs } from "./run-tabs";
import type { RunSearch, Tab } from "./search-params";
import "./run-page.css";

// Not needed for the first view of a run.
const FlowView = lazy(async () => ({ default: (await import("@/features/flow/flow-view")).FlowView }));
const TokensView = lazy(async () => ({ default: (await import("@/features/tokens/tokens-view")).TokensView }));

interface RunPageProps {
  id: string;
  search: RunSearch;
  onSearch(part: RunSearch): void;
  onAsked(run: Run): void;
}

export function RunPage(props: RunPageProps) {
  const run = useQuery(runQuery(props.id));
  if (run.data) return <LoadedRun {...props} run={run.data} />;
  return (
    <main className="shell-problem">
      {run.isPending && <p className="quiet">Loading the run…</p>}
      <ProblemNote error={run.error} onRetry={() => run.refetch()} />
    </main>
  );
}

function LoadedRun({ run, search, onSearch, onAsked }: RunPageProps & { run: RunDetail }) {
  const active = !hasEnded(run);
  useRunEvents(run.id, run.last_seq, active);
  const { log, need } = useStepLog(run.id, run.last_seq);
  const marks = useMemo(() => continuedMarks(run.marks, log), [run.marks, log]);
  const report = useQuery(reportQuery(run.id, marks.includes("w"))).data ?? null;
  const narrow = useMediaQuery("(max-width: 900px)");
  const [column, setColumn] = useState<HTMLElement | null>(null);
  const [page, setPage] = useState<HTMLElement | null>(null);
  const [view, setView] = useState<readonly [number, number] | null>(null);
  const [sheet, setSheet] = useState<"plan" | "evidence" | null>(null);
  // What is open first stays open when the run ends: nothing jumps.
  const [firstTab] = useState<Tab>(active ? "timeline" : "report");
  const flow = flowOf(run.graph);
  const tab = search.tab === "flow" && flow === null ? firstTab : (search.tab ?? firstTab);
  const names = {
    timeline: "Timeline",
    ...(flow && { flow: FLOW_NAMES[flow] }),
    sources: "Sources",
    report: "Report",
    tokens: "Tokens",
  };
  const selected = search.step ?? null;
  const pinned = search.cite ?? [];

  useEffect(() => {
    document.title = `${statusWording(run).word}: ${run.question}`;
    return () => {
      document.title = "Offing";
    };
  }, [run]);

  const pick = (seq: number) => {
    setSheet(null);
    onSearch({ step: seq, tab: "timeline", only: undefined });
  };
  const pin = (number: number) => {
    const rest = pinned.filter((other) => other !== number);
    const cite = rest.length < pinned.length ? rest : [number, ...pinned];
    onSearch({ cite: cite.length > 0 ? cite : undefined });
    if (narrow && rest.length === pinned.length) setSheet("evidence");
  };
  useHotkeys([
    { keys: "g t", does: "Timeline", run: () => onSearch({ tab: "timeline" }) },
    ...(flow ? [{ keys: "g f", does: FLOW_NAMES[flow], run: () => onSearch({ tab: "flow" }) }] : []),
    { keys: "g k", does: "Tokens", run: () => onSearch({ tab: "tokens" }) },
    { keys: "g s", does: "Sources", run: () => onSearch({ tab: "sources" }) },
    { keys: "g r", does: "Report", run: () => onSearch({ tab: "report" }) },
    { keys: "/", does: "Steer or follow up", run: () => document.getElementById("steer")?.focus() },
  ]);

  const rail = <PlanRail log={log} marks={marks} active={active} selected={selected} need={need} onPick={pick} />;
  const deeper = <DigDeeper run={run} onAsked={onAsked} />;
  const evidence = report && <Evidence report={report} pinned={pinned} onPin={pin} />;
  const scroller = narrow ? page : column;

  return (
    <div className="run-page">
      <div className="run-scroll" ref={setPage}>
        <RunHeader
          run={run}
          thread={
            <>
              <ThreadTrail run={run} />
              <Family run={run} />
            </>
          }
          controls={<RunControls run={run} hasReport={report !== null} />}
        />
        <HorizonPanel
          run={run}
          log={log}
          marks={marks}
          selected={selected}
          view={view}
          only={search.only ?? ""}
          onPick={pick}
          onOnly={(only) => onSearch({ only: only || undefined, tab: "timeline" })}
        />
        <div className="run-cols">
          {!narrow && <aside className="run-rail">{rail}</aside>}
          <main className="run-main">
            <RunTabs tab={tab} names={names} report={report} onTab={(next) => onSearch({ tab: next })}>
              {narrow && (
                <>
                  <button type="button" className="btn plain small" onClick={() => setSheet("plan")}>
                    Plan
                  </button>
                  <button type="button" className="btn plain small" onClick={() => setSheet("evidence")}>
                    Evidence
                  </button>
                </>
              )}
            </RunTabs>
            <div
              className="run-panel"
              role="tabpanel"
              id={`panel-${tab}`}
              aria-labelledby={`tab-${tab}`}
              ref={setColumn}
            >
              {tab === "timeline" && (
                <Timeline
                  run={run.id}
                  log={log}
                  marks={marks}
                  only={search.only ?? ""}
                  active={active}
                  selected={selected}
                  scroller={scroller}
                  startAtEnd={!narrow}
                  need={need}
                  onSelect={(seq) => onSearch({ step: seq })}
                  onView={setView}
                  onShowAll={() => onSearch({ only: undefined })}
                />
              )}
              <Suspense fallback={<p className="quiet run-none">Loading…</p>}>
                {tab === "flow" && <FlowView run={run} last={log.last} active={active} onPick={pick} />}
                {tab === "tokens" && <TokensView run={run} active={active} onPick={pick} />}
              </Suspense>
              {tab === "sources" && (
                <SourcesView
                  report={report}
                  log={log}
                  marks={marks}
                  pinned={pinned}
                  need={need}
                  onPick={pick}
                  onPin={pin}
                />
              )}
              {tab === "report" &&
                (report ? (
                  <ReportView report={report} pinned={pinned} onPin={pin} remedy={deeper} />
                ) : (
                  <div className="run-none">
                    <NoReport run={run} />
                  </div>
                ))}
            </div>
          </main>
          {!narrow && (
            <aside className="run-side" aria-label="Report and evidence">
              {!report && <NoReport run={run} />}
              {!report && <FoundSoFar run={run.id} marks={marks} onPick={pick} />}
              {report && (tab === "report" || pinned.length > 0) && evidence}
              {report && tab !== "report" && (
                <ReportView compact report={report} pinned={pinned} onPin={pin} remedy={deeper} />
              )}
            </aside>
          )}
        </div>
      </div>
      <OpenQuestions run={run} />
      <SteeringBar run={run} log={log} marks={marks} onAsked={onAsked} />
      <Dialog sheet open={narrow && sheet === "plan"} onClose={() => setSheet(null)} title="Plan and memory">
        {rail}
      </Dialog>
      <Dialog sheet open={narrow && sheet === "evidence"} onClose={() => setSheet(null)} title="Evidence">
        {evidence ?? (
          <>
            <NoReport run={run} />
            <FoundSoFar run={run.id} marks={marks} onPick={pick} />
          </>
        )}
      </Dialog>
    </div>
  );
}
