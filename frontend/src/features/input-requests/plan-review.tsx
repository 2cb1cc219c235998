import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useDraft } from "@/shared/ui/drafts";
import type { ResponseFormProps } from "./pending-input-requests";
import { isEdited, parsePlan, renderPlan } from "./plan-text";

/** A plan that can be approved, edited, or rejected with a comment. */
export function PlanReview({ request, draft, busy, onRespond }: ResponseFormProps) {
  const [text, setText] = useDraft(`${draft}.text`, renderPlan(request.steps));
  const [comment, setComment] = useDraft(`${draft}.comment`, "");
  const edited = isEdited(text, request.steps);
  const steps = parsePlan(text);
  const trimmedComment = comment.trim();
  const submitPlan = () =>
    onRespond(
      edited
        ? { decision: "edited", steps, comment: trimmedComment }
        : { decision: "approved", comment: trimmedComment },
    );
  return (
    <>
      <textarea
        dir="auto"
        className="field input-request-plan"
        aria-label={t`Plan, one step per line`}
        rows={Math.min(10, Math.max(3, text.split("\n").length))}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="input-request-actions">
        <input
          dir="auto"
          className="field"
          aria-label={t`Comment on the plan`}
          placeholder={t`What the next plan should take into account…`}
          value={comment}
          onChange={(event) => setComment(event.target.value)}
        />
        <button type="button" className="btn primary" disabled={busy || steps.length === 0} onClick={submitPlan}>
          {edited ? t`Approve the edited plan` : t`Approve this plan`}
        </button>
        <button
          type="button"
          className="btn"
          disabled={busy || !trimmedComment}
          title={trimmedComment ? undefined : t`Describe in the comment what the next plan should take into account`}
          onClick={() => onRespond({ decision: "commented", comment: trimmedComment })}
        >
          <Trans>Request another plan</Trans>
        </button>
      </div>
    </>
  );
}
