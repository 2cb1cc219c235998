import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { type Citation, type Rating, type Report, ratingsQuery, type Sentence } from "@/shared/api/reports";
import { formatDateTime } from "@/shared/format/numbers";
import { stopReasonInfo } from "@/shared/format/run-labels";
import { reportText } from "@/shared/texts/report-texts";
import { Loaded } from "@/shared/ui/loaded";
import { FollowUpNote } from "./follow-up-note";
import { describeAuthor } from "./people";
import { latestRatings, ReportRating } from "./ratings";
import { ReportText } from "./report-text";
import { RunImages } from "./run-images";
import { SectionMenu } from "./section-menu";
import { SentenceView } from "./sentence-view";

/** Asks a follow-up about a part of the report, in its words. */
export type AskAbout = (kind: "question" | "research", excerpt: string) => void;

interface ReportViewProps {
  report: Report;
  pinned: readonly number[];
  onPin(number: number): void;
  /** Action offered for a partial report. */
  remedy: ReactNode;
  /** Narrow layout beside the timeline. */
  compact?: boolean;
  /** `undefined` means that no follow-up can be asked. */
  onAsk?: AskAbout;
}

/** Used until the ratings are loaded. The report footer shows an error if they cannot be loaded. */
const NO_RATINGS: ReadonlyMap<string, Rating> = new Map();

/** A report of a run with its citations, ratings, images and follow-ups. */
export function ReportView({ report, pinned, onPin, remedy, compact = false, onAsk }: ReportViewProps) {
  const ratingsResult = useQuery(ratingsQuery(report.run_id));
  const ratings = ratingsResult.data ? latestRatings(ratingsResult.data, report.version) : NO_RATINGS;
  const citations = new Map<number, Citation>(report.citations.map((citation) => [citation.number, citation]));
  const renderSentence = (sentence: Sentence, text?: string) => (
    <SentenceView
      key={sentence.id}
      text={text}
      runId={report.run_id}
      version={report.version}
      sentence={sentence}
      citations={citations}
      pinned={pinned}
      rating={ratings.get(sentence.id)}
      onPin={onPin}
      onAsk={onAsk}
    />
  );
  return (
    <ReportText
      report={report}
      compact={compact}
      renderSentence={renderSentence}
      renderSectionActions={
        onAsk && ((at) => <SectionMenu section={report.sections[at] as Report["sections"][number]} onAsk={onAsk} />)
      }
      before={
        <>
          {report.status === "partial" && <PartialNote report={report} remedy={remedy} />}
          <FollowUpNote report={report} />
        </>
      }
    >
      <RunImages runId={report.run_id} />
      <footer className="report-foot">
        {report.check && <p className="quiet">{reportText(report, "judged_by")}</p>}
        <p className="quiet">
          <Trans>Version {report.version}</Trans>
          {report.author && t`, written by ${reportText(report, "author")}`}
          {report.edited_by !== null && `, ${describeAuthor(report)}`}
          {report.revision && `, ${describeRevision(report.revision)}`}, {formatDateTime(report.created_at, "short")}
        </p>
        <Loaded query={ratingsResult} label={t`your ratings`}>
          {() => <ReportRating runId={report.run_id} version={report.version} rating={ratings.get("")} />}
        </Loaded>
      </footer>
    </ReportText>
  );
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
