import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { type Citation, type Rating, type Report, ratingsQuery, type Sentence } from "@/shared/api/reports";
import { formatDateTime } from "@/shared/format/numbers";
import { stopReasonInfo } from "@/shared/format/run-labels";
import { Loaded } from "@/shared/ui/loaded";
import { FollowUpNote } from "./follow-up-note";
import { latestRatings, ReportRating } from "./ratings";
import { ReportBlock } from "./report-block";
import { groupSentences } from "./report-blocks";
import { RunImages } from "./run-images";
import { SentenceView } from "./sentence-view";
import { hasSupport } from "./unsupported";
import "./report-view.css";

interface ReportViewProps {
  report: Report;
  pinned: readonly number[];
  onPin(number: number): void;
  /** Action offered for a partial report. */
  remedy: ReactNode;
  /** Narrow layout beside the timeline. */
  compact?: boolean;
}

/** Used until the ratings are loaded. The report footer shows an error if they cannot be loaded. */
const NO_RATINGS: ReadonlyMap<string, Rating> = new Map();

/** A report as structured sentences. All of it is rendered as text. */
export function ReportView({ report, pinned, onPin, remedy, compact = false }: ReportViewProps) {
  const ratingsResult = useQuery(ratingsQuery(report.run_id));
  const ratings = ratingsResult.data ? latestRatings(ratingsResult.data) : NO_RATINGS;
  const citations = new Map<number, Citation>(report.citations.map((citation) => [citation.number, citation]));
  const renderSentence = (sentence: Sentence, text?: string) => (
    <SentenceView
      key={sentence.id}
      text={text}
      runId={report.run_id}
      sentence={sentence}
      citations={citations}
      pinned={pinned}
      rating={ratings.get(sentence.id)}
      onPin={onPin}
    />
  );
  return (
    <article className={`report ${compact ? "compact" : ""} ${isExtractive(report) ? "findings" : ""}`}>
      {report.status === "partial" && <PartialNote report={report} remedy={remedy} />}
      {report.status === "complete" && !hasSupport(report) && (
        <div className="notice sun report-partial">
          <Trans>
            <b>No sentence of this report is supported by a source.</b> Read it as what the writer stated.
          </Trans>
        </div>
      )}
      <FollowUpNote report={report} />
      <h2 dir="auto">{report.title}</h2>
      {report.answer && (
        <p dir="auto" className="report-answer">
          {renderSentence(report.answer)}
        </p>
      )}
      {report.sections.map((section, at) => (
        // A report version never changes.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <section key={at}>
          {section.heading && <h3 dir="auto">{section.heading}</h3>}
          {groupSentences(section.sentences).map((block) => (
            <ReportBlock key={block.sentences[0]?.id} block={block} renderSentence={renderSentence} />
          ))}
        </section>
      ))}
      <RunImages runId={report.run_id} />
      <footer className="report-foot">
        {report.limitations && <p dir="auto">{report.limitations}</p>}
        {report.check && <p className="quiet">{report.judged_by}</p>}
        <p className="quiet">
          <Trans>Version {report.version}</Trans>
          {report.author && t`, written by ${report.author}`}
          {report.revision && `, ${describeRevision(report.revision)}`}, {formatDateTime(report.created_at, "short")}
        </p>
        <Loaded query={ratingsResult} label={t`your ratings`}>
          {() => <ReportRating runId={report.run_id} rating={ratings.get("")} />}
        </Loaded>
      </footer>
    </article>
  );
}

/** Return whether the report is a list of extracts. They are shown as separate findings, not as prose. */
function isExtractive(report: Report): boolean {
  return report.author.startsWith("extractive");
}

function describeRevision(revision: NonNullable<Report["revision"]>): string {
  const before = plural(revision.problems_before, { one: "# sentence", other: "# sentences" });
  if (revision.skipped) return t`${before} without support not corrected (${revision.skipped.replace(/\.$/, "")})`;
  return t`${before} without support before correction, ${revision.problems_after} after`;
}

function PartialNote({ report, remedy }: { report: Report; remedy: ReactNode }) {
  const info = stopReasonInfo(report.reason);
  return (
    <div className="notice sun report-partial">
      <b>
        <Trans>This report is partial.</Trans>
      </b>{" "}
      {info?.explanation} {info?.suggestion}
      {info?.canDigDeeper && <div className="report-remedy">{remedy}</div>}
    </div>
  );
}
