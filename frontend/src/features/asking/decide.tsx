import { useDraft } from "@/shared/ui/drafts";
import type { FormProps } from "./open-questions";

/** Yes or no, with a word for the run where one helps. */
export function Decide({ question, draft, busy, onAnswer }: FormProps) {
  const [comment, setComment] = useDraft(`${draft}.comment`, "");
  const say = (approved: boolean) => onAnswer({ approved, comment: comment.trim() });
  return (
    <div className="asked-acts">
      <input
        className="field"
        aria-label={`Comment on: ${question.prompt}`}
        placeholder="A word to the run, if you like …"
        value={comment}
        onChange={(event) => setComment(event.target.value)}
      />
      <button type="button" className="btn primary" disabled={busy} onClick={() => say(true)}>
        Approve
      </button>
      <button type="button" className="btn danger" disabled={busy} onClick={() => say(false)}>
        Deny
      </button>
    </div>
  );
}
