import { useId } from "react";
import type { Schemas } from "@/shared/api/client";
import { useDraft } from "@/shared/ui/drafts";
import {
  allowedDecisions,
  argsProblem,
  DECISION_LABEL,
  type Decision,
  type DecisionDraft,
  type DecisionType,
  decisionOf,
  missingDecisions,
  needsFields,
  SEND_LABEL,
  startDrafts,
  type ToolReview,
  writeArgs,
} from "./decisions";
import type { FormProps } from "./open-questions";

interface ReviewCallsProps extends FormProps {
  form: Schemas["ResponseFormOut"];
}

/** A decision about each tool call that a graph wants to make. */
export function ReviewCalls({ form: { reviews }, draft, busy, onAnswer }: ReviewCallsProps) {
  const [kept, setDrafts] = useDraft(`${draft}.decisions`, startDrafts(reviews));
  const drafts = kept.length === reviews.length ? kept : startDrafts(reviews);
  const single = reviews.length === 1;
  const send = (decided: readonly DecisionDraft[]) => {
    const decisions = decided.map(decisionOf);
    if (decisions.every((one) => one !== null)) onAnswer({ decisions: decisions as Decision[] });
  };
  const withPart = (at: number, part: Partial<DecisionDraft>) =>
    drafts.map((one, nth) => (nth === at ? { ...one, ...part } : one));
  const choose = (at: number, type: DecisionType) => {
    // A single call that is approved needs nothing else.
    if (single && !needsFields(type)) send(withPart(at, { type }));
    else setDrafts(withPart(at, { type: drafts[at]?.type === type ? null : type }));
  };
  const approveAll = () => send(drafts.map((one) => ({ ...one, type: "approve" })));
  const missing = missingDecisions(reviews, drafts);
  const chosen = drafts.map((one) => one.type).filter((type) => type !== null);
  return (
    <form
      className="asked-calls"
      onSubmit={(event) => {
        event.preventDefault();
        send(drafts);
      }}
    >
      <ol>
        {reviews.map((review, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: calls have no id but their place, which does not change
          <li key={at}>
            <Call
              review={review}
              place={single ? "" : ` (${at + 1} of ${reviews.length})`}
              draft={drafts[at] as DecisionDraft}
              busy={busy}
              onChoose={(type) => choose(at, type)}
              onChange={(part) => setDrafts(withPart(at, part))}
            />
          </li>
        ))}
      </ol>
      {(!single || chosen.some(needsFields)) && (
        <div className="asked-acts asked-send">
          <button type="submit" className="btn primary" disabled={busy || missing !== ""}>
            {sendLabel(single, drafts, busy)}
          </button>
          {!single && chosen.length === 0 && reviews.every((review) => review.decisions.includes("approve")) && (
            <button type="button" className="btn" disabled={busy} onClick={approveAll}>
              Approve all {reviews.length}
            </button>
          )}
          {!single && missing && <span className="asked-hint">{missing}</span>}
        </div>
      )}
    </form>
  );
}

function sendLabel(single: boolean, drafts: readonly DecisionDraft[], busy: boolean): string {
  if (busy) return "Sending…";
  const type = drafts[0]?.type;
  return single && type ? SEND_LABEL[type] : `Send ${drafts.length} decisions`;
}

interface CallProps {
  review: ToolReview;
  /** Which of several calls it is. Empty: the only one. */
  place: string;
  draft: DecisionDraft;
  busy: boolean;
  onChoose(type: DecisionType): void;
  onChange(part: Partial<DecisionDraft>): void;
}

function Call({ review, place, draft, busy, onChoose, onChange }: CallProps) {
  const name = `${review.name}${place}`;
  return (
    <fieldset className="asked-call">
      {/* The question names a single call. */}
      <legend className={place ? undefined : "visually-hidden"}>
        <code>{review.name}</code>
        {place && <span className="asked-hint">{place}</span>}
      </legend>
      {review.description && <p className="asked-words">{review.description}</p>}
      {draft.type === "edit" ? (
        <EditArgs name={name} args={draft.args} onChange={(args) => onChange({ args })} />
      ) : (
        <pre className="asked-detail">
          {review.args === null ? "The arguments are too long to be shown here." : writeArgs(review.args)}
        </pre>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset within the fieldset would be a second group to step into */}
      <div className="asked-acts" role="group" aria-label={`Decision about ${name}`}>
        {allowedDecisions(review).map((type) => (
          <button
            key={type}
            type="button"
            className={buttonClass(type, place === "" && draft.type === null)}
            aria-pressed={draft.type === type}
            disabled={busy}
            onClick={() => onChoose(type)}
          >
            {DECISION_LABEL[type]}
          </button>
        ))}
      </div>
      {draft.type !== null && <Message type={draft.type} name={name} draft={draft} onChange={onChange} />}
    </fieldset>
  );
}

/** `alone`: no other button sends the answer. */
function buttonClass(type: DecisionType, alone: boolean): string {
  if (type === "reject") return "btn danger";
  return alone && type === "approve" ? "btn primary" : "btn";
}

function EditArgs({ name, args, onChange }: { name: string; args: string; onChange(args: string): void }) {
  const id = useId();
  const problem = argsProblem(args);
  return (
    <>
      <textarea
        className="field asked-json"
        aria-label={`Arguments of ${name}, as JSON`}
        aria-invalid={problem !== null}
        aria-describedby={problem ? id : undefined}
        rows={Math.min(14, Math.max(3, args.split("\n").length))}
        spellCheck={false}
        value={args}
        onChange={(event) => onChange(event.target.value)}
      />
      {problem && (
        <p id={id} className="asked-problem">
          {problem}
        </p>
      )}
    </>
  );
}

interface MessageProps {
  type: DecisionType;
  name: string;
  draft: DecisionDraft;
  onChange(part: Partial<DecisionDraft>): void;
}

function Message({ type, name, draft, onChange }: MessageProps) {
  if (type !== "reject" && type !== "respond") return null;
  const label = type === "reject" ? `Why ${name} is rejected` : `Response in place of ${name}`;
  return (
    <textarea
      className="field"
      aria-label={label}
      placeholder={type === "reject" ? "Why, if you like …" : "What the call should return …"}
      rows={2}
      value={draft.message}
      onChange={(event) => onChange({ message: event.target.value })}
    />
  );
}
