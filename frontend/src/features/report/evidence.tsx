import type { Report } from "@/shared/api/reports";
import { pluralize } from "@/shared/format/numbers";
import { QuoteCard } from "./quote-card";
import { listUnsupported, sentenceMark } from "./unsupported";
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
      <section aria-label="Evidence">
        <h2 className="label">Evidence</h2>
        {cards.length === 0 ? (
          <p className="quiet">
            {report.citations.length > 0
              ? `Hover over a citation number in the report to see its passage. Click it to pin the passage here. ${quoteSummary(report)}`
              : "This report has no citations."}
          </p>
        ) : (
          <div className="evidence-cards">
            {cards.map((citation) => (
              <QuoteCard
                key={citation.number}
                citation={citation}
                source={report.sources.find((source) => source.id === citation.source)}
                onUnpin={() => onPin(citation.number)}
              />
            ))}
          </div>
        )}
      </section>
      {unsupportedSentences.length > 0 && (
        <section aria-label="Unsupported sentences">
          <h2 className="label">
            Unsupported sentences <span className="num">{unsupportedSentences.length}</span>
          </h2>
          <ul className="evidence-unsupported">
            {unsupportedSentences.map((sentence) => (
              <li key={sentence.id}>
                <button type="button" onClick={() => scrollToSentence(sentence.id)}>
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
  return `${verified} of ${pluralize(report.citations.length, "quote")} verified just now.`;
}

function scrollToSentence(sentenceId: string): void {
  document.getElementById(`sentence-${sentenceId}`)?.scrollIntoView({ block: "center" });
}
