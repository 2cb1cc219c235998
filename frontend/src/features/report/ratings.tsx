import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { createRating, type Rating, type RatingRequest, type Sentence } from "@/shared/api/reports";
import { Dialog } from "@/shared/ui/dialog";
import { deleteDraft, useDraft } from "@/shared/ui/drafts";
import { Menu } from "@/shared/ui/menu";
import { ProblemNote } from "@/shared/ui/problem-note";
import "./ratings.css";

/**
 * Return ratings by sentence id; the rating of the whole report has the key "". A later rating replaces an earlier one.
 */
export function latestRatings(ratings: readonly Rating[]): ReadonlyMap<string, Rating> {
  const sorted = [...ratings].sort((left, right) => left.version - right.version);
  return new Map(sorted.map((rating) => [rating.sentence_id ?? "", rating]));
}

function useCreateRating(runId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: RatingRequest) => createRating(runId, body),
    onSuccess: () => client.invalidateQueries({ queryKey: ["ratings", runId] }),
  });
}

function ratingLabel(rating: Rating | undefined): string {
  if (!rating) return "";
  if (rating.correction) return "corrected";
  if (rating.value === null || rating.value === 0) return "";
  return rating.value > 0 ? "rated good" : "rated wrong";
}

/** Rating of the whole report. */
export function ReportRating({ runId, rating }: { runId: string; rating: Rating | undefined }) {
  const [isCorrecting, setIsCorrecting] = useState(false);
  const send = useCreateRating(runId);
  const value = rating?.value ?? 0;
  return (
    <div className="rating">
      <span>Is this report correct?</span>
      <button
        type="button"
        className="btn small"
        aria-pressed={value > 0}
        onClick={() => send.mutate({ sentence_id: null, value: value > 0 ? 0 : 1, correction: "" })}
      >
        Good
      </button>
      <button
        type="button"
        className="btn small"
        aria-pressed={value < 0}
        onClick={() => send.mutate({ sentence_id: null, value: value < 0 ? 0 : -1, correction: "" })}
      >
        Wrong
      </button>
      <button
        type="button"
        className="btn small"
        aria-pressed={Boolean(rating?.correction)}
        onClick={() => setIsCorrecting(true)}
      >
        {rating?.correction ? "Corrected" : "Add correction"}
      </button>
      <ProblemNote error={send.error} />
      <CorrectionDialog
        runId={runId}
        sentenceId={null}
        subject="the report"
        initialText={rating?.correction ?? ""}
        open={isCorrecting}
        onClose={() => setIsCorrecting(false)}
      />
    </div>
  );
}

/** Rating of one sentence, hidden until it is needed. */
export function SentenceMenu({
  runId,
  sentence,
  rating,
}: {
  runId: string;
  sentence: Sentence;
  rating: Rating | undefined;
}) {
  const [isCorrecting, setIsCorrecting] = useState(false);
  const send = useCreateRating(runId);
  const label = ratingLabel(rating);
  const sendRating = (value: number) => send.mutate({ sentence_id: sentence.id, value, correction: "" });
  return (
    <span className={label ? "sentence-menu rated" : "sentence-menu"}>
      <Menu
        label={label || "⋮"}
        name={`Rate this sentence${label ? `, ${label}` : ""}`}
        className="sentence-more"
        items={[
          { name: "Good", onAction: () => sendRating(1) },
          { name: "Wrong", onAction: () => sendRating(-1) },
          { name: "Add correction…", onAction: () => setIsCorrecting(true) },
        ]}
      />
      <ProblemNote error={send.error} />
      <CorrectionDialog
        runId={runId}
        sentenceId={sentence.id}
        subject={`“${sentence.text}”`}
        initialText={rating?.correction ?? ""}
        open={isCorrecting}
        onClose={() => setIsCorrecting(false)}
      />
    </span>
  );
}

interface CorrectionProps {
  runId: string;
  sentenceId: string | null;
  subject: string;
  initialText: string;
  open: boolean;
  onClose(): void;
}

function CorrectionDialog({ runId, sentenceId, subject, initialText, open, onClose }: CorrectionProps) {
  const draft = `correction.${runId}.${sentenceId ?? ""}`;
  const [text, setText] = useDraft(draft, initialText);
  const send = useCreateRating(runId);
  const handleSaved = () => {
    deleteDraft(draft);
    onClose();
  };
  const submit = () =>
    send.mutate({ sentence_id: sentenceId, value: -1, correction: text.trim() }, { onSuccess: handleSaved });
  return (
    <Dialog open={open} onClose={onClose} title="Add a correction">
      <p className="rating-subject">{subject}</p>
      <textarea
        className="field rating-text"
        aria-label="Correction"
        rows={5}
        maxLength={4000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <ProblemNote error={send.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="btn primary" disabled={!text.trim() || send.isPending} onClick={submit}>
          Save correction
        </button>
      </div>
    </Dialog>
  );
}
