import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { findStateView } from "@/features/graph-state/state-views";
import { RunControls } from "@/features/run/run-controls";
import { RunHeader } from "@/features/run/run-header";
import { graphsQuery } from "@/shared/api/installation";
import { type Report, reportQuery } from "@/shared/api/reports";
import { hasEnded, type Run, type RunDetail, runQuery } from "@/shared/api/runs";
import { runStatusLabel } from "@/shared/format/run-labels";
import { useLanguage } from "@/shared/language/language";
import { extendMarks } from "@/shared/minimap/marks";
import { VisibleSteps } from "@/shared/minimap/visible-steps";
import { useRunEvents } from "@/shared/stream/stream-context";
import { useStepLog } from "@/shared/stream/use-step-log";
import { Dialog } from "@/shared/ui/dialog";
import { useMediaQuery } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { lazyView } from "@/shared/ui/lazy-view";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { tabPanelProps } from "@/shared/ui/tabs";
import { RunTabs } from "./run-tabs";
import type { RunSearch, Tab } from "./search-params";
import "./run-page.css";

// Question and status are shown first. The code of the other parts follows at once, each in its place.
const ThreadTrail = lazyView(msg`the thread`, async () => (await import("./run-parts")).ThreadTrail, true);
const ChildRunList = lazyView(msg`the runs`, async () => (await import("./run-parts")).ChildRunList, true);
const WaitReason = lazyView(msg`the state`, async () => (await import("./run-parts")).WaitReason, true);
const MinimapPanel = lazyView(msg`the minimap`, async () => (await import("./run-parts")).MinimapPanel);
const PlanRail = lazyView(msg`the plan`, async () => (await import("./run-parts")).PlanRail);
const MessageBar = lazyView(msg`the message form`, async () => (await import("./run-parts")).MessageBar);
const DigDeeper = lazyView(msg`the action`, async () => (await import("./run-parts")).DigDeeper);
const EvidencePreview = lazyView(msg`the evidence so far`, async () => (await import("./run-parts")).EvidencePreview);
const NoReport = lazyView(msg`the note`, async () => (await import("./run-parts")).NoReport);
const ExportMenu = lazyView(msg`the export`, async () => (await import("@/features/report/export-menu")).ExportMenu);
const Timeline = lazyView(msg`the timeline`, async () => (await import("@/features/timeline/timeline")).Timeline);
const ReportView = lazyView(msg`the report`, async () => (await import("@/features/report/report-view")).ReportView);
const ReportTab = lazyView(msg`the report`, async () => (await import("@/features/report/report-tab")).ReportTab);
const Evidence = lazyView(msg`the evidence`, async () => (await import("@/features/report/evidence")).Evidence);
const SourcesView = lazyView(
  msg`the sources`,
  async () => (await import("@/features/sources/sources-view")).SourcesView,
);
const AnswerDrafts = lazyView(msg`the drafts`, async () => (await import("@/features/run/answer-drafts")).AnswerDrafts);
const PendingInputRequests = lazyView(
  msg`the input requests`,
  async () => (await import("@/features/input-requests/pending-input-requests")).PendingInputRequests,
);
const GraphInterrupts = lazyView(
  msg`the interrupts`,
  async () => (await import("@/features/input-requests/graph-interrupts")).GraphInterrupts,
);
const LangGraphState = lazyView(
  msg`the state`,
  async () => (await import("@/features/graph-state/langgraph-state")).LangGraphState,
);
const GraphStateView = lazyView(
  msg`this view`,
  async () => (await import("@/features/graph-state/graph-state-view")).GraphStateView,
);
const ForkedFrom = lazyView(msg`the origin`, async () => (await import("@/features/run/forked-from")).ForkedFrom);
const GraphView = lazyView(msg`the graph`, async () => (await import("@/features/graph-drawing/graph-view")).GraphView);
const CostView = lazyView(msg`the cost`, async () => (await import("@/features/cost/cost-view")).CostView);
const TokensView = lazyView(msg`the tokens`, async () => (await import("@/features/tokens/tokens-view")).TokensView);

/** Load the code of the parts that a run shows at once, and that of the timeline if it is the open tab. */
export async function preloadParts(isTimeline: boolean): Promise<void> {
  const parts = [ThreadTrail, ChildRunList, MinimapPanel, PlanRail, MessageBar, DigDeeper, EvidencePreview, NoReport];
  await Promise.all([...parts, ...(isTimeline ? [Timeline] : [])].map((part) => part.preload()));
}

interface RunPageProps {
  runId: string;
  search: RunSearch;
  /** A change of tab adds a history entry. A change within a tab replaces the entry. */
  onSearch(part: RunSearch): void;
  onRunCreated(run: Run): void;
}

export function RunPage(props: RunPageProps) {
  const run = useQuery(runQuery(props.runId));
  const isTimeline = props.search.tab === "timeline";
  useEffect(() => {
    if (isTimeline) Timeline.preload();
  }, [isTimeline]);
  return (
    <Loaded query={run} label={t`the run`} fullPage>
      {(loaded) => <LoadedRun {...props} run={loaded} />}
    </Loaded>
  );
}

function LoadedRun({ run, search, onSearch, onRunCreated }: RunPageProps & { run: RunDetail }) {
  useLanguage();
  const active = !hasEnded(run);
  useRunEvents(run.id, run.last_seq, active);
  const { log, loadRange, error: stepsError, retry } = useStepLog(run.id, run.last_seq);
  const marks = useMemo(() => extendMarks(run.step_marks, log), [run.step_marks, log]);
  const isReportWritten = marks.includes("w");
  const reportResult = useQuery(reportQuery(run.id, isReportWritten));
  const narrow = useMediaQuery("(max-width: 900px)");
  const [column, setColumn] = useState<HTMLElement | null>(null);
  const [page, setPage] = useState<HTMLElement | null>(null);
  const [visibleSteps] = useState(() => new VisibleSteps());
  const [sheet, setSheet] = useState<"plan" | "evidence" | null>(null);
  // The tab that is open first stays open when the run ends, so that nothing jumps.
  const [firstTab] = useState<Tab>(active ? "timeline" : "report");
  const graphs = useQuery(graphsQuery);
  const stateView = findStateView(graphs.data, run.graph);
  const isLangGraph = run.protocol === "langgraph";
  const hasState = stateView !== null || isLangGraph || (search.tab === "state" && graphs.isPending);
  const tab = search.tab === "state" && !hasState ? firstTab : (search.tab ?? firstTab);
  const labels = {
    timeline: t`Timeline`,
    ...(hasState && { state: t`State` }),
    graph: t`Graph`,
    sources: t`Sources`,
    report: t`Report`,
    cost: t`Cost`,
    tokens: t`Tokens`,
  };
  const selected = search.step ?? null;
  const pinned = search.cite ?? [];
  const shownVersion = reportResult.data ? (search.version ?? reportResult.data.version) : null;

  const status = runStatusLabel(run).label;
  const title = t`${status}: ${run.question}`;
  useEffect(() => {
    document.title = title;
    return () => {
      document.title = "Offing";
    };
  }, [title]);

  const selectStep = (seq: number) => {
    setSheet(null);
    onSearch({ step: seq, tab: "timeline", only: undefined, q: undefined, node: undefined });
  };
  const togglePin = (number: number) => {
    const rest = pinned.filter((other) => other !== number);
    const cite = rest.length < pinned.length ? rest : [number, ...pinned];
    onSearch({ cite: cite.length > 0 ? cite : undefined });
    if (narrow && rest.length === pinned.length) setSheet("evidence");
  };
  useHotkeys([
    { keys: "g t", description: t`Timeline`, run: () => onSearch({ tab: "timeline" }) },
    ...(hasState ? [{ keys: "g a", description: t`State`, run: () => onSearch({ tab: "state" }) }] : []),
    { keys: "g p", description: t`Graph`, run: () => onSearch({ tab: "graph" }) },
    { keys: "g c", description: t`Cost`, run: () => onSearch({ tab: "cost" }) },
    { keys: "g k", description: t`Tokens`, run: () => onSearch({ tab: "tokens" }) },
    { keys: "g s", description: t`Sources`, run: () => onSearch({ tab: "sources" }) },
    { keys: "g r", description: t`Report`, run: () => onSearch({ tab: "report" }) },
    {
      keys: "/",
      description: t`Message the run or ask a follow-up question`,
      run: () => document.getElementById("message-input")?.focus(),
    },
  ]);

  const rail = (
    <PlanRail
      runId={run.id}
      log={log}
      marks={marks}
      active={active}
      selected={selected}
      loadRange={loadRange}
      onPick={selectStep}
    />
  );
  const digDeeper = <DigDeeper run={run} onRunCreated={onRunCreated} />;
  const withReport = (renderReport: (report: Report) => ReactNode, fallback: ReactNode = null) => (
    <ReportOrPlaceholder run={run} isWritten={isReportWritten} query={reportResult} fallback={fallback}>
      {renderReport}
    </ReportOrPlaceholder>
  );
  const evidencePreview = <EvidencePreview runId={run.id} marks={marks} onPick={selectStep} />;
  const scroller = narrow ? page : column;

  return (
    <div className={tab === "report" ? "run-page run-reading" : "run-page"}>
      <div className="run-scroll" ref={setPage}>
        <RunHeader
          waitReason={<WaitReason run={run} />}
          run={run}
          thread={
            <>
              {run.forked_from_id && <ForkedFrom run={run} />}
              <ThreadTrail run={run} />
              <ChildRunList run={run} />
            </>
          }
          controls={
            <RunControls
              run={run}
              hasReport={shownVersion !== null}
              exports={
                // The report has its own, which stays in view while it is read.
                shownVersion !== null &&
                tab !== "report" && <ExportMenu runId={run.id} version={shownVersion} primary={!active} />
              }
            />
          }
        />
        <MinimapPanel
          run={run}
          log={log}
          marks={marks}
          selected={selected}
          visibleSteps={visibleSteps}
          markFilter={search.only ?? ""}
          onPick={selectStep}
          onMarkFilter={(only) => onSearch({ only: only || undefined, tab: "timeline" })}
        />
        <div className="run-cols">
          {!narrow && <aside className="run-rail">{rail}</aside>}
          <main className="run-main">
            <RunTabs tab={tab} labels={labels} report={reportResult.data} onTab={(next) => onSearch({ tab: next })}>
              {narrow && (
                <>
                  <button type="button" className="btn plain small" onClick={() => setSheet("plan")}>
                    <Trans>Plan</Trans>
                  </button>
                  <button type="button" className="btn plain small" onClick={() => setSheet("evidence")}>
                    <Trans>Evidence</Trans>
                  </button>
                </>
              )}
            </RunTabs>
            <div className="run-panel" {...tabPanelProps("run-", tab)} ref={setColumn}>
              {/* Rows of steps that could not be loaded keep their position. The error is shown here. */}
              <ProblemNote error={stepsError} onRetry={retry} />
              {tab !== "graph" && <ProblemNote error={graphs.error} onRetry={() => graphs.refetch()} />}
              {/* Its rows need the element that scrolls, which is known when the page is in the document. */}
              {tab === "timeline" && scroller && (
                <Timeline
                  runId={run.id}
                  log={log}
                  marks={marks}
                  markFilter={search.only ?? ""}
                  search={search.q ?? ""}
                  node={search.node ?? ""}
                  active={active}
                  selected={selected}
                  scroller={scroller}
                  startAtEnd={!narrow}
                  loadRange={loadRange}
                  onSelect={(seq) => onSearch({ step: seq })}
                  onVisibleRange={visibleSteps.set}
                  onSearch={(text) => onSearch({ q: text || undefined })}
                  onShowAll={() => onSearch({ only: undefined, node: undefined })}
                />
              )}
              {tab === "state" && stateView && (
                <GraphStateView run={run} view={stateView} last={log.last} active={active} onPick={selectStep} />
              )}
              {tab === "state" && !stateView && isLangGraph && <LangGraphState run={run} />}
              {tab === "graph" && (
                <Loaded query={graphs} label={t`the graphs`}>
                  {(loaded) => (
                    <GraphView
                      run={run}
                      graph={loaded.find(({ name }) => name === run.graph) ?? null}
                      active={active}
                      node={search.node ?? ""}
                      onNode={(node) => onSearch({ node, only: undefined, q: undefined, tab: "timeline" })}
                    />
                  )}
                </Loaded>
              )}
              {tab === "cost" && <CostView run={run} active={active} />}
              {tab === "tokens" && <TokensView run={run} active={active} onPick={selectStep} />}
              {tab === "sources" && (
                <SourcesView
                  runId={run.id}
                  active={active}
                  isReportWritten={isReportWritten}
                  report={reportResult}
                  marks={marks}
                  pinned={pinned}
                  onPick={selectStep}
                  onPin={togglePin}
                />
              )}
              {tab === "report" &&
                withReport((it) => (
                  <ReportTab
                    run={run}
                    latest={it}
                    version={search.version}
                    part={search.part}
                    pinned={pinned}
                    onPin={togglePin}
                    remedy={digDeeper}
                    onShow={onSearch}
                    buildFollowUp={async (question, kind) => {
                      const { buildPartFollowUp } = await import("@/features/run/follow-up");
                      return buildPartFollowUp(run, question, kind);
                    }}
                    onRunCreated={onRunCreated}
                  />
                ))}
            </div>
          </main>
          {!narrow && (
            <aside className="run-side" aria-label={t`Report and evidence`}>
              {withReport(
                (it) => (
                  <>
                    {(tab === "report" || pinned.length > 0) && (
                      <Evidence report={it} pinned={pinned} onPin={togglePin} />
                    )}
                    {tab !== "report" && (
                      <ReportView compact report={it} pinned={pinned} onPin={togglePin} remedy={digDeeper} />
                    )}
                  </>
                ),
                evidencePreview,
              )}
            </aside>
          )}
        </div>
      </div>
      {active && <AnswerDrafts runId={run.id} />}
      {active && run.pending_input_requests > 0 && <PendingInputRequests run={run} />}
      {!active && isLangGraph && <GraphInterrupts run={run} onRunCreated={onRunCreated} />}
      <MessageBar run={run} log={log} marks={marks} onRunCreated={onRunCreated} />
      <Dialog sheet open={narrow && sheet === "plan"} onClose={() => setSheet(null)} title={t`Plan and memory`}>
        {rail}
      </Dialog>
      <Dialog sheet open={narrow && sheet === "evidence"} onClose={() => setSheet(null)} title={t`Evidence`}>
        {withReport(
          (it) => (
            <Evidence report={it} pinned={pinned} onPin={togglePin} />
          ),
          evidencePreview,
        )}
      </Dialog>
    </div>
  );
}

interface ReportOrPlaceholderProps {
  run: RunDetail;
  /** The steps of the run contain a report. */
  isWritten: boolean;
  query: Loadable<Report | null>;
  /** Content below the note that there is no report. */
  fallback: ReactNode;
  children(report: Report): ReactNode;
}

/** Shows the report, its loading state, its error, or a note that there is no report. */
function ReportOrPlaceholder({ run, isWritten, query, fallback, children }: ReportOrPlaceholderProps) {
  const none = (
    <>
      <NoReport run={run} />
      {fallback}
    </>
  );
  if (!isWritten) return none;
  return (
    <Loaded query={query} label={t`the report`}>
      {(report) => (report === null ? none : children(report))}
    </Loaded>
  );
}
