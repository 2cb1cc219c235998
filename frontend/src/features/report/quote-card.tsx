import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { passageQuery } from "@/shared/api/library";
import type { Citation } from "@/shared/api/reports";
import { shortHash } from "@/shared/format/numbers";
import { ProblemNote } from "@/shared/ui/problem-note";
import { headOf, oneLine, reflowed, tailOf } from "./excerpt";
import "./quote-card.css";

/** Characters of context on each side: at a glance, and when asked for more. */
const GLANCE = 220;
const MORE = 1_600;

interface QuoteCardProps {
  citation: Citation;
  /** Shown when the card is pinned. */
  onUnpin?: () => void;
}

/** A citation's quote in its context, and whether it is still found there. */
export function QuoteCard({ citation, onUnpin }: QuoteCardProps) {
  const [more, setMore] = useState(false);
  return (
    <article className="quote-card" data-citation={citation.number} aria-label={`Citation ${citation.number}`}>
      <Quote citation={citation} more={more} brief={!onUnpin} />
      <footer className="quote-foot">
        <span className="cite static">{citation.number}</span>
        <Standing citation={citation} />
        <span className="quote-title">{citation.title}</span>
        <Hash citation={citation} />
        {onUnpin && (
          <span className="quote-actions">
            {citation.artefact_id && (
              <button type="button" className="btn plain small" onClick={() => setMore(!more)}>
                {more ? "Less context" : "More context"}
              </button>
            )}
            {citation.artefact_id && (
              <Link to="/library" search={{ source: citation.source_id }} className="btn plain small">
                Source
              </Link>
            )}
            <button
              type="button"
              className="btn plain small"
              aria-label={`Unpin citation ${citation.number}`}
              onClick={onUnpin}
            >
              Unpin
            </button>
          </span>
        )}
      </footer>
    </article>
  );
}

/** Whether the quote still stands in the stored text. */
function Standing({ citation }: { citation: Citation }) {
  if (citation.verified) return <span className="quote-ok">✓ quote verified</span>;
  if (!citation.artefact_id) return <span className="quote-bad">source erased</span>;
  return <span className="quote-bad">✗ quote not found in the stored text</span>;
}

function useContext(citation: Citation, around: number) {
  const { artefact_id: artefact, start, end } = citation;
  return useQuery({ ...passageQuery({ artefact: artefact ?? "", start, end }, around), enabled: artefact !== null });
}

/** `brief`: everything on as few lines as possible, for a card that floats. */
function Quote({ citation, more, brief }: { citation: Citation; more: boolean; brief: boolean }) {
  const passage = useContext(citation, more ? 2_000 : 600);
  const limit = more ? MORE : GLANCE;
  const laid = brief ? oneLine : reflowed;
  if (!citation.artefact_id) {
    return (
      <p className="quote-text">
        <mark>{citation.quote}</mark>
        <span className="quote-erased">The source of this citation was erased from the library.</span>
      </p>
    );
  }
  return (
    <>
      <p className="quote-text" aria-busy={passage.isPending}>
        {passage.data && <span className="quote-around">{tailOf(laid(passage.data.before), limit)}</span>}
        <mark>{laid(passage.data?.text ?? citation.quote)}</mark>
        {passage.data && <span className="quote-around">{headOf(laid(passage.data.after), limit)}</span>}
      </p>
      <ProblemNote error={passage.error} onRetry={() => passage.refetch()} />
    </>
  );
}

/** Of the same passage as the quote's; where it cannot be fetched, the quote says so. */
function Hash({ citation }: { citation: Citation }) {
  const passage = useContext(citation, 600);
  const { data } = passage;
  if (!data || passage.isError) return null;
  return (
    <span className="tag" title={`SHA-256 of the stored file ${data.name}: ${data.snapshot}`}>
      sha {shortHash(data.snapshot)}
    </span>
  );
}
