import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useLayoutEffect, useRef } from "react";
import { type AnswerDraft, draftsQuery } from "@/shared/api/drafts";
import { ProblemNote } from "@/shared/ui/problem-note";
import "./answer-drafts.css";

/** The answers that models are writing now. Renders nothing if there are none. Only this part renders again per text. */
export function AnswerDrafts({ runId }: { runId: string }) {
  const drafts = useQuery(draftsQuery(runId));
  if (drafts.error) return <ProblemNote error={drafts.error} onRetry={() => drafts.refetch()} />;
  if (!drafts.data || drafts.data.length === 0) return null;
  return (
    <section className="answer-drafts" aria-label={t`Answers being written`}>
      {drafts.data.map((draft) => (
        <Draft key={draft.call_id} draft={draft} />
      ))}
    </section>
  );
}

function Draft({ draft }: { draft: AnswerDraft }) {
  const text = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each new text scrolls to its end
  useLayoutEffect(() => {
    if (text.current) text.current.scrollTop = text.current.scrollHeight;
  }, [draft.text]);
  return (
    <article className="answer-draft">
      {/* A screen reader announces that an answer is being written, and not each word of it. */}
      <p className="label" aria-live="polite">
        <Trans>{draft.label || draft.role} · being written</Trans>
        {draft.attempt > 1 && t` · attempt ${draft.attempt}`}
        {draft.is_unverified && (
          <span className="tag">
            {" "}
            <Trans>unverified until it is checked</Trans>
          </span>
        )}
      </p>
      <div dir="auto" className="answer-draft-text" aria-live="off" ref={text}>
        {draft.text}
      </div>
    </article>
  );
}
