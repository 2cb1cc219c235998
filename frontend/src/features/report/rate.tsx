import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Rating, type RatingRequest, rate, type Sentence } from "@/shared/api/reports";
import { Dialog } from "@/shared/ui/dialog";
import { forgetDraft, useDraft } from "@/shared/ui/drafts";
import { Menu } from "@/shared/ui/menu";
import { ProblemNote } from "@/shared/ui/problem-note";
import "./rate.css";

/** Ratings by sentence id; the whole report's under "". A later one takes the place of an earlier one. */
export function latestRatings(ratings: readonly Rating[]): ReadonlyMap<string, Rating> {
  const sorted = [...ratings].sort((left, right) => left.version - right.version);
  return new Map(sorted.map((rating) => [rating.claim ?? "", rating]));
}

function useRate(run: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: RatingRequest) => rate(run, body),
    onSuccess: () => client.invalidateQueries({ queryKey: ["ratings", run] }),
  });
}

function words(rating: Rating | undefined): string {
  if (!rating) return "";
  if (rating.correction) return "corrected";
  if (rating.value === null || rating.value === 0) return "";
  return rating.value > 0 ? "rated good" : "rated wrong";
}

/** Opinion on the whole report. */
export function ReportRating({ run, rating }: { run: string; rating: Rating | undefined }) {
  const [writing, setWriting] = useState(false);
  const send = useRate(run);
  const value = rating?.value ?? 0;
  return (
    <div className="rate">
      <span>Is this report right?</span>
      <button
        type="button"
        className="btn small"
        aria-pressed={value > 0}
        onClick={() => send.mutate({ claim: null, value: value > 0 ? 0 : 1, correction: "" })}
      >
        Good
      </button>
      <button
        type="button"
        className="btn small"
        aria-pressed={value < 0}
        onClick={() => send.mutate({ claim: null, value: value < 0 ? 0 : -1, correction: "" })}
      >
        Wrong
      </button>
      <button
        type="button"
        className="btn small"
        aria-pressed={Boolean(rating?.correction)}
        onClick={() => setWriting(true)}
      >
        {rating?.correction ? "Corrected" : "Correct it"}
      </button>
      <ProblemNote error={send.error} />
      <Correction
        run={run}
        claim={null}
        about="the report"
        was={rating?.correction ?? ""}
        open={writing}
        onClose={() => setWriting(false)}
      />
    </div>
  );
}

/** Opinion on one sentence, out of the way until it is wanted. */
export function SentenceMenu({
  run,
  sentence,
  rating,
}: {
  run: string;
  sentence: Sentence;
  rating: Rating | undefined;
}) {
  const [writing, setWriting] = useState(false);
  const send = useRate(run);
  const said = words(rating);
  const give = (value: number) => send.mutate({ claim: sentence.id, value, correction: "" });
  return (
    <span className={said ? "sentence-menu said" : "sentence-menu"}>
      <Menu label={said || "⋮"} name={`Rate this sentence${said ? `, ${said}` : ""}`} className="sentence-more">
        <button type="button" role="menuitem" className="menu-item" onClick={() => give(1)}>
          Good
        </button>
        <button type="button" role="menuitem" className="menu-item" onClick={() => give(-1)}>
          Wrong
        </button>
        <button type="button" role="menuitem" className="menu-item" onClick={() => setWriting(true)}>
          Correct it…
        </button>
      </Menu>
      <ProblemNote error={send.error} />
      <Correction
        run={run}
        claim={sentence.id}
        about={`“${sentence.text}”`}
        was={rating?.correction ?? ""}
        open={writing}
        onClose={() => setWriting(false)}
      />
    </span>
  );
}

interface CorrectionProps {
  run: string;
  claim: string | null;
  about: string;
  was: string;
  open: boolean;
  onClose(): void;
}

function Correction({ run, claim, about, was, open, onClose }: CorrectionProps) {
  const draft = `correction.${run}.${claim ?? ""}`;
  const [text, setText] = useDraft(draft, was);
  const send = useRate(run);
  const saved = () => {
    forgetDraft(draft);
    onClose();
  };
  const submit = () => send.mutate({ claim, value: -1, correction: text.trim() }, { onSuccess: saved });
  return (
    <Dialog open={open} onClose={onClose} title="What would be right?">
      <p className="rate-about">{about}</p>
      <textarea
        className="field rate-text"
        aria-label="Correction"
        rows={5}
        maxLength={4000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <ProblemNote error={send.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Leave it
        </button>
        <button type="button" className="btn primary" disabled={!text.trim() || send.isPending} onClick={submit}>
          Save correction
        </button>
      </div>
    </Dialog>
  );
}
