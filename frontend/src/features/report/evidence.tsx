import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { Report } from "@/shared/api/reports";
import { QuoteCard } from "./quote-card";
import { jumpToSentence, listUnsupported, sentenceMark } from "./sentence-marks";
import "./evidence.css";

interface EvidenceProps {
  report: Report;
  pinned: readonly number[];
  onPin(number: number): void;
}

/** Pinned citations and unsupported sentences. */
export function Evidence({ report, pinned, onPin }: EvidenceProps) {
  const cards = pinned
    .map((number) => report.citations.find((citation) => citation.number === number))
    .filter((citation) => citation !== undefined);
  const unsupportedSentences = listUnsupported(report);
  return (
    <div className="evidence">
      <section aria-label={t`Evidence`}>
        <h2 className="label">
          <Trans>Evidence</Trans>
        </h2>
        {cards.length === 0 ? (
          <p className="quiet">
            {report.citations.length > 0
              ? t`Hover over a citation number in the report to see its passage. Click it to pin the passage here. ${quoteSummary(report)}`
              : t`This report has no citations.`}
          </p>
        ) : (
          <div className="evidence-cards">
            {cards.map((citation) => (
              <QuoteCard
                key={citation.number}
                citation={citation}
                source={report.sources.find((source) => source.id === citation.source)}
                siblings={report.citations.filter(
                  (other) => other.source_id === citation.source_id && other.number !== citation.number,
                )}
                onUnpin={() => onPin(citation.number)}
              />
            ))}
          </div>
        )}
      </section>
      {unsupportedSentences.length > 0 && (
        <section aria-label={t`Unsupported sentences`}>
          <h2 className="label">
            <Trans>
              Unsupported sentences <span className="num">{unsupportedSentences.length}</span>
            </Trans>
          </h2>
          <ul className="evidence-unsupported">
            {unsupportedSentences.map((sentence) => (
              <li key={sentence.id}>
                <button dir="auto" type="button" onClick={() => jumpToSentence(sentence.id)}>
                  “{sentence.text}”
                </button>
                <span className="quiet">{sentenceMark(sentence)?.reason}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function quoteSummary(report: Report): string {
  const verified = report.citations.filter((citation) => citation.verified).length;
  return t`${verified} of ${plural(report.citations.length, { one: "# quote", other: "# quotes" })} verified just now.`;
}
