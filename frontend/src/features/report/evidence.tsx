import type { Report } from "@/shared/api/reports";
import { counted } from "@/shared/format/numbers";
import { QuoteCard } from "./quote-card";
import { unsupported } from "./unsupported";
import "./evidence.css";

interface EvidenceProps {
  report: Report;
  pinned: readonly number[];
  onPin(number: number): void;
}

/** What was pinned, and what stands on nothing. */
export function Evidence({ report, pinned, onPin }: EvidenceProps) {
  const cards = pinned
    .map((number) => report.citations.find((citation) => citation.number === number))
    .filter((citation) => citation !== undefined);
  const weak = unsupported(report);
  return (
    <div className="evidence">
      <section aria-label="Evidence">
        <h2 className="label">Evidence</h2>
        {cards.length === 0 ? (
          <p className="quiet">
            {report.citations.length > 0
              ? `Point at a number in the report to see its passage; click to keep it here. ${countedQuotes(report)}`
              : "This report cites nothing."}
          </p>
        ) : (
          <div className="evidence-cards">
            {cards.map((citation) => (
              <QuoteCard key={citation.number} citation={citation} onUnpin={() => onPin(citation.number)} />
            ))}
          </div>
        )}
      </section>
      {weak.length > 0 && (
        <section aria-label="Not supported yet">
          <h2 className="label">
            Not supported yet <span className="num">{weak.length}</span>
          </h2>
          <ul className="evidence-weak">
            {weak.map((sentence) => (
              <li key={sentence.id}>
                <button type="button" onClick={() => reveal(sentence.id)}>
                  “{sentence.text}”
                </button>
                <span className="quiet">
                  {sentence.rejected.length > 0
                    ? sentence.rejected.join(" ")
                    : "No passage read so far says this. It is marked in every export."}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function countedQuotes(report: Report): string {
  const found = report.citations.filter((citation) => citation.verified).length;
  return `${found} of ${counted(report.citations.length, "quote")} verified just now.`;
}

function reveal(sentence: string): void {
  document.getElementById(`sentence-${sentence}`)?.scrollIntoView({ block: "center" });
}
