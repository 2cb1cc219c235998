import { useDraft } from "@/shared/ui/drafts";
import type { FormProps } from "./open-questions";
import { isEdited, planSteps, planText } from "./plan-text";

/** A plan to follow, to rewrite, or to send back with a comment. */
export function ReviewPlan({ question, draft, busy, onAnswer }: FormProps) {
  const [text, setText] = useDraft(`${draft}.text`, planText(question.steps));
  const [comment, setComment] = useDraft(`${draft}.comment`, "");
  const edited = isEdited(text, question.steps);
  const steps = planSteps(text);
  const said = comment.trim();
  const follow = () =>
    onAnswer(edited ? { verdict: "edited", steps, comment: said } : { verdict: "approved", comment: said });
  return (
    <>
      <textarea
        className="field asked-plan"
        aria-label="The plan, one step a line"
        rows={Math.min(10, Math.max(3, text.split("\n").length))}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="asked-acts">
        <input
          className="field"
          aria-label="Comment on the plan"
          placeholder="What another plan should take into account …"
          value={comment}
          onChange={(event) => setComment(event.target.value)}
        />
        <button type="button" className="btn primary" disabled={busy || steps.length === 0} onClick={follow}>
          {edited ? "Follow the edited plan" : "Follow this plan"}
        </button>
        <button
          type="button"
          className="btn"
          disabled={busy || !said}
          title={said ? undefined : "Say in the comment what another plan should take into account"}
          onClick={() => onAnswer({ verdict: "commented", comment: said })}
        >
          Ask for another plan
        </button>
      </div>
    </>
  );
}
