import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { Sentence } from "@/shared/api/reports";
import type { SharedCitation, SharedReport, SharedSource } from "@/shared/api/shares";
import { formatDateTime } from "@/shared/format/numbers";
import { stopReasonInfo } from "@/shared/format/run-labels";
import { positionText } from "@/shared/texts/position-texts";
import { reportText } from "@/shared/texts/report-texts";
import { ReportBlock } from "./report-block";
import { groupSentences } from "./report-blocks";
import { ReportLimits } from "./report-limits";
import { sentenceMark } from "./sentence-marks";
import "./report-view.css";
import "@/shared/document/citation-number.css";
import styles from "./shared-report-view.module.css";

/** A shared report: sentences, conflicts and sources with their quotes. All of it is rendered as text. */
export function SharedReportView({ report }: { report: SharedReport }) {
  const renderSentence = (sentence: Sentence, text?: string) => (
    <SharedSentence key={sentence.id} sentence={sentence} text={text} />
  );
  return (
    <article className={`report ${styles.article} ${report.author.startsWith("extractive") ? "findings" : ""}`}>
      {report.question && report.question !== report.title && (
        <p dir="auto" className={styles.question}>
          {report.question}
        </p>
      )}
      <h1 dir="auto" className={styles.title}>
        {report.title}
      </h1>
      {report.status === "partial" && (
        <p className="notice sun report-partial">
          <b>
            <Trans>This report is partial.</Trans>
          </b>{" "}
          {stopReasonInfo(report.reason)?.explanation}
        </p>
      )}
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
      <ReportLimits text={report.limitations} />
      <Conflicts report={report} />
      <Sources report={report} />
      <Foot report={report} />
    </article>
  );
}

/** A sentence with links to its quotes below, and a mark if its sources do not support it. */
function SharedSentence({ sentence, text }: { sentence: Sentence; text: string | undefined }) {
  const mark = sentenceMark(sentence);
  return (
    <span className="sentence">
      <span dir="auto" className={mark ? "unsupported" : undefined} title={mark?.reason}>
        {text ?? sentence.text}
      </span>
      {[...sentence.citations, ...sentence.passages].map((number) => (
        <CitationLink key={number} number={number} />
      ))}
      {mark && (
        <small dir="auto" className="sentence-mark" title={mark.reason}>
          {mark.label}
          <span className="visually-hidden">. {mark.reason}</span>
        </small>
      )}{" "}
    </span>
  );
}

function CitationLink({ number }: { number: number }) {
  return (
    <a className={`cite ${styles.cite}`} href={`#citation-${number}`} aria-label={t`Citation ${number}`}>
      {number}
    </a>
  );
}

function Conflicts({ report }: { report: SharedReport }) {
  if (report.conflicts.length === 0) return null;
  const quotes = new Map(report.citations.map((citation) => [citation.number, citation.quote]));
  return (
    <section className={styles.part} aria-label={t`Conflicts between sources`}>
      <h2>
        <Trans>Conflicts between sources</Trans>
      </h2>
      <ul>
        {report.conflicts.map((conflict) => (
          <li key={`${conflict.citations.join()} ${conflict.matter}`}>
            {conflict.matter && <p dir="auto">{conflict.matter}</p>}
            {conflict.citations.map((number) => (
              <blockquote key={number} dir="auto" className={styles.quote}>
                {quotes.get(number)} <CitationLink number={number} />
              </blockquote>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Sources({ report }: { report: SharedReport }) {
  if (report.sources.length === 0) return null;
  const citations = new Map(report.citations.map((citation) => [citation.number, citation]));
  return (
    <section className={styles.part} aria-label={t`Sources`}>
      <h2>
        <Trans>Sources</Trans>
      </h2>
      <ol className={styles.sources}>
        {report.sources.map((source) => (
          <li key={source.id}>
            <SourceTitle source={source} />
            {source.description && (
              <p dir="auto" className={styles.description}>
                {source.description}
              </p>
            )}
            {source.citations.map((number) => {
              const citation = citations.get(number);
              return citation && <Quote key={number} citation={citation} />;
            })}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** The title of a source. Only an address with HTTP or HTTPS becomes a link, which tells its site nothing of this page. */
function SourceTitle({ source }: { source: SharedSource }) {
  const title = `${source.id}. ${source.title}`;
  return (
    <h3 dir="auto" className={styles.source}>
      {/^https?:\/\//.test(source.url) ? (
        <a href={source.url} rel="noreferrer noopener nofollow" target="_blank">
          {title}
        </a>
      ) : (
        title
      )}
    </h3>
  );
}

function Quote({ citation }: { citation: SharedCitation }) {
  return (
    <div className={styles.citation} id={`citation-${citation.number}`}>
      <span className="cite static">{citation.number}</span>
      <div>
        <blockquote dir="auto" className={styles.quote}>
          {citation.quote}
        </blockquote>
        <p className={styles.description}>
          <Verification citation={citation} />
          {citation.position && <span dir="auto"> · {positionText(citation)}</span>}
        </p>
      </div>
    </div>
  );
}

function Verification({ citation }: { citation: SharedCitation }) {
  if (citation.erased) return <span className={styles.unverified}>{t`source erased`}</span>;
  if (citation.verified) return <span className={styles.verified}>{t`✓ quote verified`}</span>;
  return <span className={styles.unverified}>{t`✗ quote not found in the stored text`}</span>;
}

function Foot({ report }: { report: SharedReport }) {
  return (
    <footer className="report-foot">
      {report.judged_by && <p className="quiet">{reportText(report, "judged_by")}</p>}
      {report.conflict_search && <p className="quiet">{reportText(report, "conflict_search")}</p>}
      <p className="quiet">
        <Trans>Version {report.version}</Trans>
        {report.author && t`, written by ${reportText(report, "author")}`}, {formatDateTime(report.created_at, "short")}
      </p>
    </footer>
  );
}
