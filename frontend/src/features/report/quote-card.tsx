import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { passageQuery } from "@/shared/api/library";
import type { Citation, CitedSource } from "@/shared/api/reports";
import { listCitedMarks } from "@/shared/document/document-text";
import { OpenDocument } from "@/shared/document/open-document";
import { shortHash } from "@/shared/format/numbers";
import { positionText } from "@/shared/texts/position-texts";
import { ProblemNote } from "@/shared/ui/problem-note";
import { collapseWhitespace, reflow, truncateEnd, truncateStart } from "./excerpt";
import "./quote-card.css";

/** Characters of context on each side, collapsed and expanded. */
const SHORT_CONTEXT_CHARS = 220;
const LONG_CONTEXT_CHARS = 1_600;

interface QuoteCardProps {
  citation: Citation;
  /** Its author, date and origin are shown if it is set. */
  source?: CitedSource;
  /** Other citations of the same source, which are marked in its document, too. */
  siblings?: readonly Citation[];
  /** Set if the card is pinned. */
  onUnpin?: () => void;
}

/** The quote of a citation in its context, and whether it is verified. */
export function QuoteCard({ citation, source, siblings, onUnpin }: QuoteCardProps) {
  const [isExpanded, setIsExpanded] = useState(false);
  return (
    <article className="quote-card" data-citation={citation.number} aria-label={t`Citation ${citation.number}`}>
      <Quote citation={citation} isExpanded={isExpanded} isCompact={!onUnpin} />
      {source?.description && <p className="quote-source">{source.description}</p>}
      <footer className="quote-foot">
        <span className="cite static">{citation.number}</span>
        <VerificationStatus citation={citation} />
        <span dir="auto" className="quote-title">
          {citation.title}
          {citation.position && `, ${positionText(citation)}`}
        </span>
        <SnapshotHash citation={citation} />
        {onUnpin && (
          <span className="quote-actions">
            {citation.text_id && (
              <button type="button" className="btn plain small" onClick={() => setIsExpanded(!isExpanded)}>
                {isExpanded ? t`Less context` : t`More context`}
              </button>
            )}
            {citation.text_id && (
              <OpenDocument
                className="btn plain small"
                title={citation.title}
                textId={citation.text_id}
                marks={listCitedMarks([citation, ...(siblings ?? [])])}
                marksLabel={t`Cited passages`}
              >
                <Trans>Open document</Trans>
              </OpenDocument>
            )}
            <button
              type="button"
              className="btn plain small"
              aria-label={t`Unpin citation ${citation.number}`}
              onClick={onUnpin}
            >
              <Trans>Unpin</Trans>
            </button>
          </span>
        )}
      </footer>
    </article>
  );
}

/** Whether the quote is found in the stored text. */
function VerificationStatus({ citation }: { citation: Citation }) {
  if (citation.verified)
    return (
      <span className="quote-verified">
        <Trans>✓ quote verified</Trans>
      </span>
    );
  if (!citation.text_id)
    return (
      <span className="quote-unverified">
        <Trans>source erased</Trans>
      </span>
    );
  return (
    <span className="quote-unverified">
      <Trans>✗ quote not found in the stored text</Trans>
    </span>
  );
}

function usePassage(citation: Citation, around: number) {
  const { text_id: textId, start, end } = citation;
  return useQuery({ ...passageQuery({ text_id: textId ?? "", start, end }, around), enabled: textId !== null });
}

/** `isCompact` uses as few lines as possible, for a floating card. */
function Quote({ citation, isExpanded, isCompact }: { citation: Citation; isExpanded: boolean; isCompact: boolean }) {
  const passage = usePassage(citation, isExpanded ? 2_000 : 600);
  const limit = isExpanded ? LONG_CONTEXT_CHARS : SHORT_CONTEXT_CHARS;
  const normalize = isCompact ? collapseWhitespace : reflow;
  if (!citation.text_id) {
    return (
      <p dir="auto" className="quote-text">
        <mark>{citation.quote}</mark>
        <span className="quote-erased">
          <Trans>The source of this citation was erased from the library.</Trans>
        </span>
      </p>
    );
  }
  return (
    <>
      <p dir="auto" className="quote-text" aria-busy={passage.isPending}>
        {passage.data && <span className="quote-context">{truncateStart(normalize(passage.data.before), limit)}</span>}
        <mark>{normalize(passage.data?.text ?? citation.quote)}</mark>
        {passage.data && <span className="quote-context">{truncateEnd(normalize(passage.data.after), limit)}</span>}
      </p>
      <ProblemNote error={passage.error} onRetry={() => passage.refetch()} />
    </>
  );
}

/** SHA-256 of the stored file. If the passage cannot be loaded, the quote above shows the error. */
function SnapshotHash({ citation }: { citation: Citation }) {
  const passage = usePassage(citation, 600);
  const { data } = passage;
  if (!data || passage.isError) return null;
  return (
    <span className="tag" title={t`SHA-256 of the stored file ${data.name}: ${data.snapshot}`}>
      <Trans>sha {shortHash(data.snapshot)}</Trans>
    </span>
  );
}
