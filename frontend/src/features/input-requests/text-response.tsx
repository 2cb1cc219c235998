import { t } from "@lingui/core/macro";
import type { FormEvent } from "react";
import { requestTexts } from "@/shared/texts/request-texts";
import { useDraft } from "@/shared/ui/drafts";
import type { ResponseFormProps } from "./pending-input-requests";

/** A response as free text or as one of the choices. */
export function TextResponse({ request, draft, busy, onRespond }: ResponseFormProps) {
  const [text, setText] = useDraft(`${draft}.text`, "");
  if (request.choices.length > 0) {
    return (
      <div className="input-request-actions">
        {request.choices.map((choice) => (
          <button
            dir="auto"
            key={choice}
            type="button"
            className="btn"
            disabled={busy}
            onClick={() => onRespond({ text: choice })}
          >
            {choice}
          </button>
        ))}
      </div>
    );
  }
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) onRespond({ text: text.trim() });
  };
  return (
    <form className="input-request-actions" onSubmit={submit}>
      <input
        dir="auto"
        className="field"
        aria-label={t`Response to: ${requestTexts(request).prompt}`}
        placeholder={request.kind === "interrupt" ? t`Text, or JSON if the run expects it…` : t`Your response…`}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit" className="btn primary" disabled={busy || !text.trim()}>
        {busy ? t`Sending…` : t`Send response`}
      </button>
    </form>
  );
}
