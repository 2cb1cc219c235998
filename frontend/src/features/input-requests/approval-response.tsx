import { useDraft } from "@/shared/ui/drafts";
import type { ResponseFormProps } from "./pending-input-requests";

/** Approve or deny, with an optional comment. */
export function ApprovalResponse({ request, draft, busy, onRespond }: ResponseFormProps) {
  const [comment, setComment] = useDraft(`${draft}.comment`, "");
  const respond = (approved: boolean) => onRespond({ approved, comment: comment.trim() });
  return (
    <div className="input-request-actions">
      <input
        className="field"
        aria-label={`Comment on: ${request.prompt}`}
        placeholder="Optional comment…"
        value={comment}
        onChange={(event) => setComment(event.target.value)}
      />
      <button type="button" className="btn primary" disabled={busy} onClick={() => respond(true)}>
        Approve
      </button>
      <button type="button" className="btn danger" disabled={busy} onClick={() => respond(false)}>
        Deny
      </button>
    </div>
  );
}
