import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { createRating, type Rating, type RatingRequest, type Sentence } from "@/shared/api/reports";
import { Dialog } from "@/shared/ui/dialog";
import { deleteDraft, useDraft } from "@/shared/ui/drafts";
import { lazyView } from "@/shared/ui/lazy-view";
import { Menu } from "@/shared/ui/menu";
import { ProblemNote } from "@/shared/ui/problem-note";
import type { AskAbout } from "./report-view";
import { listAskActions } from "./section-menu";
import "./ratings.css";

const LearningDialog = lazyView(
  msg`what Offing learns`,
  async () => (await import("./learning-dialog")).LearningDialog,
);

/**
 * Return the ratings of a version of the report by sentence id; the rating of the whole report has the key "". A later
 * rating replaces an earlier one.
 */
export function latestRatings(ratings: readonly Rating[], reportVersion: number): ReadonlyMap<string, Rating> {
  const sorted = ratings
    .filter((rating) => rating.report_version === reportVersion)
    .sort((left, right) => left.version - right.version);
  return new Map(sorted.map((rating) => [rating.sentence_id ?? "", rating]));
}

function useCreateRating(runId: string, version: number) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: RatingRequest) => createRating(runId, { ...body, version }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["ratings", runId] }),
  });
}

function ratingLabel(rating: Rating | undefined): string {
  if (!rating) return "";
  if (rating.correction) return t`corrected`;
  if (rating.value === null || rating.value === 0) return "";
  return rating.value > 0 ? t`rated good` : t`rated wrong`;
}

/** Rating of the whole report. */
export function ReportRating({
  runId,
  version,
  rating,
}: {
  runId: string;
  version: number;
  rating: Rating | undefined;
}) {
  const [isCorrecting, setIsCorrecting] = useState(false);
  const [isTeaching, setIsTeaching] = useState(false);
  const send = useCreateRating(runId, version);
  const value = rating?.value ?? 0;
  return (
    <div className="rating">
      <span>
        <Trans>Is this report correct?</Trans>
      </span>
      <button
        type="button"
        className="btn small"
        aria-pressed={value > 0}
        onClick={() => send.mutate({ sentence_id: null, value: value > 0 ? 0 : 1, correction: "" })}
      >
        <Trans>Good</Trans>
      </button>
      <button
        type="button"
        className="btn small"
        aria-pressed={value < 0}
        onClick={() => send.mutate({ sentence_id: null, value: value < 0 ? 0 : -1, correction: "" })}
      >
        <Trans>Wrong</Trans>
      </button>
      <button
        type="button"
        className="btn small"
        aria-pressed={Boolean(rating?.correction)}
        onClick={() => setIsCorrecting(true)}
      >
        {rating?.correction ? t`Corrected` : t`Add correction`}
      </button>
      <button type="button" className="btn small" onClick={() => setIsTeaching(true)}>
        <Trans>Right answer…</Trans>
      </button>
      {isTeaching ? <LearningDialog runId={runId} onClose={() => setIsTeaching(false)} /> : null}
      <ProblemNote error={send.error} />
      <CorrectionDialog
        runId={runId}
        version={version}
        sentenceId={null}
        subject={t`the report`}
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
  version,
  sentence,
  rating,
  onAsk,
}: {
  runId: string;
  version: number;
  sentence: Sentence;
  rating: Rating | undefined;
  onAsk?: AskAbout;
}) {
  const [isCorrecting, setIsCorrecting] = useState(false);
  const send = useCreateRating(runId, version);
  const label = ratingLabel(rating);
  const sendRating = (value: number) => send.mutate({ sentence_id: sentence.id, value, correction: "" });
  return (
    <span className={label ? "sentence-menu rated" : "sentence-menu"}>
      <Menu
        label={label || "⋮"}
        name={label ? t`Rate this sentence, ${label}` : t`Rate this sentence`}
        className="sentence-more"
        items={[
          { name: t`Good`, onAction: () => sendRating(1) },
          { name: t`Wrong`, onAction: () => sendRating(-1) },
          { name: t`Add correction…`, onAction: () => setIsCorrecting(true) },
          ...(onAsk ? listAskActions(onAsk, sentence.text) : []),
        ]}
      />
      <ProblemNote error={send.error} />
      <CorrectionDialog
        runId={runId}
        version={version}
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
  version: number;
  sentenceId: string | null;
  subject: string;
  initialText: string;
  open: boolean;
  onClose(): void;
}

function CorrectionDialog({ runId, version, sentenceId, subject, initialText, open, onClose }: CorrectionProps) {
  const draft = `correction.${runId}.${version}.${sentenceId ?? ""}`;
  const [text, setText] = useDraft(draft, initialText);
  const send = useCreateRating(runId, version);
  const handleSaved = () => {
    deleteDraft(draft);
    onClose();
  };
  const submit = () =>
    send.mutate({ sentence_id: sentenceId, value: -1, correction: text.trim() }, { onSuccess: handleSaved });
  return (
    <Dialog open={open} onClose={onClose} title={t`Add a correction`}>
      <p dir="auto" className="rating-subject">
        {subject}
      </p>
      <textarea
        dir="auto"
        className="field rating-text"
        aria-label={t`Correction`}
        rows={5}
        maxLength={4000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <ProblemNote error={send.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          <Trans>Cancel</Trans>
        </button>
        <button type="button" className="btn primary" disabled={!text.trim() || send.isPending} onClick={submit}>
          <Trans>Save correction</Trans>
        </button>
      </div>
    </Dialog>
  );
}
