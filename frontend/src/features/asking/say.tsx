import type { FormEvent } from "react";
import { useDraft } from "@/shared/ui/drafts";
import type { FormProps } from "./open-questions";

/** An answer in words, or one of the choices. */
export function Say({ question, draft, busy, onAnswer }: FormProps) {
  const [text, setText] = useDraft(`${draft}.text`, "");
  if (question.choices.length > 0) {
    return (
      <div className="asked-acts">
        {question.choices.map((choice) => (
          <button key={choice} type="button" className="btn" disabled={busy} onClick={() => onAnswer({ text: choice })}>
            {choice}
          </button>
        ))}
      </div>
    );
  }
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) onAnswer({ text: text.trim() });
  };
  return (
    <form className="asked-acts" onSubmit={submit}>
      <input
        className="field"
        aria-label={`Answer to: ${question.prompt}`}
        placeholder={question.kind === "interrupt" ? "Words, or JSON where the run expects it …" : "Your answer …"}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit" className="btn primary" disabled={busy || !text.trim()}>
        {busy ? "Answering…" : "Answer"}
      </button>
    </form>
  );
}
