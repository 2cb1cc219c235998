import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import type { Report } from "@/shared/api/reports";
import { seqsWith } from "@/shared/horizon/marks";
import { heldSteps, type StepLog } from "@/shared/stream/step-log";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { citedSources } from "./cited";
import "./sources-view.css";

interface SourcesViewProps {
  /** Whether a report was written; before that, nothing is cited. */
  written: boolean;
  report: Loadable<Report | null>;
  log: StepLog;
  marks: string;
  pinned: readonly number[];
  need(from: number, to: number): void;
  onPick(seq: number): void;
  onPin(number: number): void;
}

/** How many of the latest searches and readings are listed. */
const LATEST = 200;

/** What the report cites, and everything the run searched for and read. */
export function SourcesView({ written, report, log, marks, pinned, need, onPick, onPin }: SourcesViewProps) {
  const reached = seqsWith(marks, ["s", "r"]).slice(-LATEST);
  const first = reached[0];
  useEffect(() => {
    if (first !== undefined) need(first, marks.length);
  }, [first, need, marks.length]);
  return (
    <div className="sources">
      <section aria-label="Cited">
        <h2 className="label">Cited in the report</h2>
        {written ? (
          <Loaded query={report} what="the report">
            {(it) => <Cited report={it} pinned={pinned} onPin={onPin} />}
          </Loaded>
        ) : (
          <NothingCited />
        )}
      </section>
      <section aria-label="Searched and read">
        <h2 className="label">
          Searched and read <span className="num">{reached.length || ""}</span>
        </h2>
        {reached.length === 0 && <p className="quiet">Nothing yet.</p>}
        <ol>
          {heldSteps(log, reached).map((step) => (
            <li key={step.seq}>
              <button type="button" className="reached" onClick={() => onPick(step.seq)}>
                <span className="mono quiet">{step.seq}</span>
                <span className="reached-kind">{step.label || step.kind}</span>
                <span>
                  {step.title}
                  {step.detail && <span className="reached-detail">{step.detail}</span>}
                </span>
              </button>
            </li>
          ))}
        </ol>
      </section>
    </div>
  );
}

function NothingCited() {
  return <p className="quiet">Nothing is cited yet.</p>;
}

function Cited({ report, pinned, onPin }: Pick<SourcesViewProps, "pinned" | "onPin"> & { report: Report | null }) {
  const cited = citedSources(report);
  if (cited.length === 0) return <NothingCited />;
  return (
    <ol>
      {cited.map((source) => (
        <li key={source.id} className="cited">
          <Link to="/library" search={{ source: source.id }}>
            {source.title}
          </Link>
          <ul>
            {source.citations.map((citation) => (
              <li key={citation.number}>
                <button
                  type="button"
                  aria-pressed={pinned.includes(citation.number)}
                  onClick={() => onPin(citation.number)}
                >
                  <span className="cite static">{citation.number}</span>
                  <span className="cited-quote">{citation.quote}</span>
                </button>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ol>
  );
}
