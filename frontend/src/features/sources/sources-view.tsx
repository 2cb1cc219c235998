import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import type { Report } from "@/shared/api/reports";
import { findSeqs } from "@/shared/minimap/marks";
import { listLoadedSteps, type StepLog } from "@/shared/stream/step-log";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { groupBySource } from "./cited-sources";
import "./sources-view.css";

interface SourcesViewProps {
  /** Whether a report was written. Until then, nothing is cited. */
  isReportWritten: boolean;
  report: Loadable<Report | null>;
  log: StepLog;
  marks: string;
  pinned: readonly number[];
  loadRange(from: number, to: number): void;
  onPick(seq: number): void;
  onPin(number: number): void;
}

/** Maximum number of search and read steps listed. */
const MAX_STEPS = 200;

/** What the report cites, and all searches and reads of the run. */
export function SourcesView({
  isReportWritten,
  report,
  log,
  marks,
  pinned,
  loadRange,
  onPick,
  onPin,
}: SourcesViewProps) {
  const retrievalSeqs = findSeqs(marks, ["s", "r"]).slice(-MAX_STEPS);
  const first = retrievalSeqs[0];
  useEffect(() => {
    if (first !== undefined) loadRange(first, marks.length);
  }, [first, loadRange, marks.length]);
  return (
    <div className="sources">
      <section aria-label={t`Cited`}>
        <h2 className="label">
          <Trans>Cited in the report</Trans>
        </h2>
        {isReportWritten ? (
          <Loaded query={report} label={t`the report`}>
            {(it) => <CitedSourceList report={it} pinned={pinned} onPin={onPin} />}
          </Loaded>
        ) : (
          <NoCitations />
        )}
      </section>
      <section aria-label={t`Searched and read`}>
        <h2 className="label">
          <Trans>Searched and read</Trans> <span className="num">{retrievalSeqs.length || ""}</span>
        </h2>
        {retrievalSeqs.length === 0 && (
          <p className="quiet">
            <Trans>No searches or reads yet.</Trans>
          </p>
        )}
        <ol>
          {listLoadedSteps(log, retrievalSeqs).map((step) => (
            <li key={step.seq}>
              <button type="button" className="retrieval" onClick={() => onPick(step.seq)}>
                <span className="mono quiet">{step.seq}</span>
                <span className="retrieval-kind">{step.label || step.kind}</span>
                <span dir="auto">
                  {step.title}
                  {step.detail && (
                    <span dir="auto" className="retrieval-detail">
                      {step.detail}
                    </span>
                  )}
                </span>
              </button>
            </li>
          ))}
        </ol>
      </section>
    </div>
  );
}

function NoCitations() {
  return (
    <p className="quiet">
      <Trans>No citations yet.</Trans>
    </p>
  );
}

function CitedSourceList({
  report,
  pinned,
  onPin,
}: Pick<SourcesViewProps, "pinned" | "onPin"> & { report: Report | null }) {
  const sources = groupBySource(report);
  if (sources.length === 0) return <NoCitations />;
  return (
    <ol>
      {sources.map((source) => (
        <li key={source.id} className="cited">
          <Link dir="auto" to="/library" search={{ source: source.id }}>
            {source.label}. {source.title}
          </Link>
          {source.description && (
            <p dir="auto" className="cited-description">
              {source.description}
            </p>
          )}
          <ul>
            {source.citations.map((citation) => (
              <li key={citation.number}>
                <button
                  type="button"
                  aria-pressed={pinned.includes(citation.number)}
                  onClick={() => onPin(citation.number)}
                >
                  <span className="cite static">{citation.number}</span>
                  <span>
                    <span dir="auto" className="cited-quote">
                      {citation.quote}
                    </span>
                    {citation.position && <span className="cited-position">{citation.position}</span>}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ol>
  );
}
