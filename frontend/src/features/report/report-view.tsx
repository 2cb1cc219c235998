import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { type Citation, type Rating, type Report, ratingsQuery, type Sentence } from "@/shared/api/reports";
import { ending } from "@/shared/format/run-words";
import { Loaded } from "@/shared/ui/loaded";
import { Figures } from "./figures";
import { latestRatings, ReportRating } from "./rate";
import { SentenceView } from "./sentence-view";
import "./report-view.css";

interface ReportViewProps {
  report: Report;
  pinned: readonly number[];
  onPin(number: number): void;
  /** What can be done about a partial report. */
  remedy: ReactNode;
  /** Narrow: beside the timeline. */
  compact?: boolean;
}

/** Before they have come; the foot of the report says where they could not be fetched. */
const NO_RATINGS: ReadonlyMap<string, Rating> = new Map();

/** A report as structured sentences; every word of it is shown as text. */
export function ReportView({ report, pinned, onPin, remedy, compact = false }: ReportViewProps) {
  const stored = useQuery(ratingsQuery(report.run_id));
  const ratings = stored.data ? latestRatings(stored.data) : NO_RATINGS;
  const citations = new Map<number, Citation>(report.citations.map((citation) => [citation.number, citation]));
  const shown = (sentence: Sentence) => (
    <SentenceView
      key={sentence.id}
      run={report.run_id}
      sentence={sentence}
      citations={citations}
      pinned={pinned}
      rating={ratings.get(sentence.id)}
      onPin={onPin}
    />
  );
  return (
    <article className={`report ${compact ? "compact" : ""} ${isList(report) ? "findings" : ""}`}>
      {report.status === "partial" && <PartialNote report={report} remedy={remedy} />}
      <h2>{report.title}</h2>
      {report.answer && <p className="report-answer">{shown(report.answer)}</p>}
      {report.sections.map((section, at) => (
        // A report version never changes.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <section key={at}>
          {section.heading && <h3>{section.heading}</h3>}
          <p>{section.sentences.map(shown)}</p>
        </section>
      ))}
      <Figures run={report.run_id} />
      <footer className="report-foot">
        {report.limits && <p>{report.limits}</p>}
        <p className="quiet">
          Version {report.version}
          {report.written_by && `, written by ${report.written_by}`},{" "}
          {new Date(report.created_at).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}
        </p>
        <Loaded query={stored} what="your ratings">
          {() => <ReportRating run={report.run_id} rating={ratings.get("")} />}
        </Loaded>
      </footer>
    </article>
  );
}

/** Extracts are findings beside one another, not prose: each stands by itself. */
function isList(report: Report): boolean {
  return report.written_by.startsWith("extractive");
}

function PartialNote({ report, remedy }: { report: Report; remedy: ReactNode }) {
  const words = ending(report.reason);
  return (
    <div className="notice sun report-partial">
      <b>This report is partial.</b> {words?.why} {words?.next}
      {words?.deeper && <div className="report-remedy">{remedy}</div>}
    </div>
  );
}
