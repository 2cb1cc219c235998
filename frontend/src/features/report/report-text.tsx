import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";
import type { Report, Sentence } from "@/shared/api/reports";
import { ReportBlock } from "./report-block";
import { groupSentences } from "./report-blocks";
import { ReportLimits } from "./report-limits";
import { hasSupport } from "./sentence-marks";
import "./report-view.css";

interface ReportTextProps {
  report: Report;
  /** Narrow layout beside the timeline. */
  compact?: boolean;
  /** Content above the title: notes about the version. */
  before?: ReactNode;
  /** Content below the sections, such as images and a footer. */
  children?: ReactNode;
  /** Renders a sentence. With `text`, only that text of it. */
  renderSentence(sentence: Sentence, text?: string): ReactNode;
  /** Buttons behind the heading of a section. */
  renderSectionActions?(at: number): ReactNode;
}

/** Return the id of the element of a section, to which the table of contents leads. */
export function sectionId(at: number): string {
  return `report-section-${at + 1}`;
}

/**
 * The text of a report. All of it is rendered as text. It requests nothing, so a page that has only the report can show
 * it.
 */
export function ReportText({
  report,
  compact = false,
  before,
  children,
  renderSentence,
  renderSectionActions,
}: ReportTextProps) {
  const isExtractive = report.author.startsWith("extractive");
  return (
    <article className={`report ${compact ? "compact" : ""} ${isExtractive ? "findings" : ""}`}>
      {before}
      {report.status === "complete" && !hasSupport(report) && (
        <div className="notice sun report-partial">
          <Trans>
            <b>No sentence of this report is supported by a source.</b> Read it as what the writer stated.
          </Trans>
        </div>
      )}
      <h2 dir="auto">{report.title}</h2>
      {report.answer && (
        <p dir="auto" className="report-answer">
          {renderSentence(report.answer)}
        </p>
      )}
      {report.sections.map((section, at) => (
        // A report version never changes.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <section key={at} id={compact ? undefined : sectionId(at)} tabIndex={compact ? undefined : -1}>
          {section.heading && (
            <h3 dir="auto">
              {section.heading}
              {renderSectionActions?.(at)}
            </h3>
          )}
          {groupSentences(section.sentences).map((block) => (
            <ReportBlock key={block.sentences[0]?.id} block={block} renderSentence={renderSentence} />
          ))}
        </section>
      ))}
      <ReportLimits text={report.limitations} />
      {children}
    </article>
  );
}
