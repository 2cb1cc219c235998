import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { OpenQuestions } from "@/features/asking/open-questions";
import { FLOW_NAMES, flowOf } from "@/features/flow/flows";
import { PlanRail } from "@/features/plan/plan-rail";
import { Evidence } from "@/features/report/evidence";
import { FoundSoFar } from "@/features/report/found-so-far";
import { NoReport } from "@/features/report/no-report";
import { ReportView } from "@/features/report/report-view";
import { Family } from "@/features/run/family";
import { ForkedFrom } from "@/features/run/forked-from";
import { HorizonPanel } from "@/features/run/horizon-panel";
import { RunControls } from "@/features/run/run-controls";
import { RunHeader } from "@/features/run/run-header";
import { DigDeeper, SteeringBar } from "@/features/run/steering-bar";
import { ThreadTrail } from "@/features/run/thread-trail";
import { SourcesView } from "@/features/sources/sources-view";
import { Timeline } from "@/features/timeline/timeline";
import { type Report, reportQuery } from "@/shared/api/reports";
import { hasEnded, type Run, type RunDetail, runQuery } from "@/shared/api/runs";
import { statusWording } from "@/shared/format/run-words";
import { continuedMarks } from "@/shared/horizon/marks";
import { useRunEvents } from "@/shared/stream/stream-context";
import { useStepLog } from "@/shared/stream/use-step-log";
import { Dialog } from "@/shared/ui/dialog";
import { useMediaQuery } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { RunTabs } from "./run-tabs";
import type { RunSearch, Tab } from "./search-params";
import { fetched } from "./view";
import "./run-page.css";

// Not needed for the first view of a run.
const FlowView = fetched("this view", async () => (await import("@/features/flow/flow-view")).FlowView);
const TokensView = fetched("the tokens", async () => (await import("@/features/tokens/tokens-view")).TokensView);

interface RunPageProps {
  id: string;
  search: RunSearch;
  /** Another tab is a place to come back to; what changes within one is not. */
  onSearch(part: RunSearch): void;
  onAsked(run: Run): void;
}

export function RunPage(props: RunPageProps) {
  const run = useQuery(runQuery(props.id));
  return (
    <Loaded query={run} what="the run" framed>
      {(loaded) => <LoadedRun {...props} run={loaded} />}
    </Loaded>
  );
}

function LoadedRun({ run, search, onSearch, onAsked }: RunPageProps & { run: RunDetail }) {
  const active = !hasEnded(run);
  useRunEvents(run.id, run.last_seq, active);
  const { log, need, error: missing, retry } = useStepLog(run.id, run.last_seq);
  const marks = useMemo(() => continuedMarks(run.marks, log), [run.marks, log]);
  const written = marks.includes("w");
  const stored = useQuery(reportQuery(run.id, written));
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
  const withReport = (show: (report: Report) => ReactNode, without: ReactNode = null) => (
    <ReportOr run={run} written={written} query={stored} without={without}>
      {show}
    </ReportOr>
  );
  const found = <FoundSoFar run={run.id} marks={marks} onPick={pick} />;
  const scroller = narrow ? page : column;

  return (
    <div className="run-page">
      <div className="run-scroll" ref={setPage}>
        <RunHeader
          run={run}
          thread={
            <>
              <ForkedFrom run={run} />
              <ThreadTrail run={run} />
              <Family run={run} />
            </>
          }
          controls={<RunControls run={run} hasReport={Boolean(stored.data)} />}
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
            <RunTabs tab={tab} names={names} report={stored.data} onTab={(next) => onSearch({ tab: next })}>
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
              {/* Rows whose steps are missing keep their place; here stands why. */}
              <ProblemNote error={missing} onRetry={retry} />
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
              {tab === "flow" && <FlowView run={run} last={log.last} active={active} onPick={pick} />}
              {tab === "tokens" && <TokensView run={run} active={active} onPick={pick} />}
              {tab === "sources" && (
                <SourcesView
                  written={written}
                  report={stored}
                  log={log}
                  marks={marks}
                  pinned={pinned}
                  need={need}
                  onPick={pick}
                  onPin={pin}
                />
              )}
              {tab === "report" &&
                withReport((it) => <ReportView report={it} pinned={pinned} onPin={pin} remedy={deeper} />)}
            </div>
          </main>
          {!narrow && (
            <aside className="run-side" aria-label="Report and evidence">
              {withReport(
                (it) => (
                  <>
                    {(tab === "report" || pinned.length > 0) && <Evidence report={it} pinned={pinned} onPin={pin} />}
                    {tab !== "report" && <ReportView compact report={it} pinned={pinned} onPin={pin} remedy={deeper} />}
                  </>
                ),
                found,
              )}
            </aside>
          )}
        </div>
      </div>
      {active && run.questions > 0 && <OpenQuestions run={run} />}
      <SteeringBar run={run} log={log} marks={marks} onAsked={onAsked} />
      <Dialog sheet open={narrow && sheet === "plan"} onClose={() => setSheet(null)} title="Plan and memory">
        {rail}
      </Dialog>
      <Dialog sheet open={narrow && sheet === "evidence"} onClose={() => setSheet(null)} title="Evidence">
        {withReport(
          (it) => (
            <Evidence report={it} pinned={pinned} onPin={pin} />
          ),
          found,
        )}
      </Dialog>
    </div>
  );
}

interface ReportOrProps {
  run: RunDetail;
  /** Its steps say that a report was written. */
  written: boolean;
  query: Loadable<Report | null>;
  /** What stands below the word that there is no report. */
  without: ReactNode;
  children(report: Report): ReactNode;
}

/** The report, or what is in its place: nobody has written one, it is on its way, or it could not be fetched. */
function ReportOr({ run, written, query, without, children }: ReportOrProps) {
  const none = (
    <>
      <NoReport run={run} />
      {without}
    </>
  );
  if (!written) return none;
  return (
    <Loaded query={query} what="the report">
      {(report) => (report === null ? none : children(report))}
    </Loaded>
  );
}
