import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { requestTexts } from "@/shared/texts/request-texts";
import { useDraft } from "@/shared/ui/drafts";
import type { ResponseFormProps } from "./pending-input-requests";

/** Approve or deny, with an optional comment. */
export function ApprovalResponse({ request, draft, busy, onRespond }: ResponseFormProps) {
  const [comment, setComment] = useDraft(`${draft}.comment`, "");
  const respond = (approved: boolean) => onRespond({ approved, comment: comment.trim() });
  return (
    <div className="input-request-actions">
      <input
        dir="auto"
        className="field"
        aria-label={t`Comment on: ${requestTexts(request).prompt}`}
        placeholder={t`Optional comment…`}
        value={comment}
        onChange={(event) => setComment(event.target.value)}
      />
      <button type="button" className="btn primary" disabled={busy} onClick={() => respond(true)}>
        <Trans>Approve</Trans>
      </button>
      <button type="button" className="btn danger" disabled={busy} onClick={() => respond(false)}>
        <Trans>Deny</Trans>
      </button>
    </div>
  );
}
