import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useId } from "react";
import type { Schemas } from "@/shared/api/client";
import { useDraft } from "@/shared/ui/drafts";
import {
  allowedDecisions,
  buildDecision,
  createDrafts,
  DECISION_LABELS,
  type Decision,
  type DecisionDraft,
  type DecisionType,
  describeMissingDecisions,
  findArgsError,
  formatArgs,
  hasExtraFields,
  SEND_LABELS,
  type ToolReview,
} from "./decisions";
import type { ResponseFormProps } from "./pending-input-requests";

interface ToolCallReviewProps extends ResponseFormProps {
  form: Schemas["ResponseFormOut"];
}

/** A decision about each tool call that a graph requests. */
export function ToolCallReview({ form: { reviews }, draft, busy, onRespond }: ToolCallReviewProps) {
  const [storedDrafts, setDrafts] = useDraft(`${draft}.decisions`, createDrafts(reviews));
  const drafts = storedDrafts.length === reviews.length ? storedDrafts : createDrafts(reviews);
  const isSingle = reviews.length === 1;
  const send = (finalDrafts: readonly DecisionDraft[]) => {
    const decisions = finalDrafts.map(buildDecision);
    if (decisions.every((one) => one !== null)) onRespond({ decisions: decisions as Decision[] });
  };
  const updateDraft = (at: number, part: Partial<DecisionDraft>) =>
    drafts.map((one, nth) => (nth === at ? { ...one, ...part } : one));
  const choose = (at: number, type: DecisionType) => {
    // Approving a single call needs no further input.
    if (isSingle && !hasExtraFields(type)) send(updateDraft(at, { type }));
    else setDrafts(updateDraft(at, { type: drafts[at]?.type === type ? null : type }));
  };
  const approveAll = () => send(drafts.map((one) => ({ ...one, type: "approve" })));
  const missingText = describeMissingDecisions(reviews, drafts);
  const chosen = drafts.map((one) => one.type).filter((type) => type !== null);
  return (
    <form
      className="input-request-calls"
      onSubmit={(event) => {
        event.preventDefault();
        send(drafts);
      }}
    >
      <ol>
        {reviews.map((review, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: calls have no id, and their positions do not change
          <li key={at}>
            <ToolCallFields
              review={review}
              position={isSingle ? "" : t` (${at + 1} of ${reviews.length})`}
              draft={drafts[at] as DecisionDraft}
              busy={busy}
              onChoose={(type) => choose(at, type)}
              onChange={(part) => setDrafts(updateDraft(at, part))}
            />
          </li>
        ))}
      </ol>
      {(!isSingle || chosen.some(hasExtraFields)) && (
        <div className="input-request-actions input-request-send">
          <button type="submit" className="btn primary" disabled={busy || missingText !== ""}>
            {sendLabel(isSingle, drafts, busy)}
          </button>
          {!isSingle && chosen.length === 0 && reviews.every((review) => review.decisions.includes("approve")) && (
            <button type="button" className="btn" disabled={busy} onClick={approveAll}>
              <Trans>Approve all {reviews.length}</Trans>
            </button>
          )}
          {!isSingle && missingText && <span className="input-request-note">{missingText}</span>}
        </div>
      )}
    </form>
  );
}

function sendLabel(isSingle: boolean, drafts: readonly DecisionDraft[], busy: boolean): string {
  if (busy) return t`Sending…`;
  const type = drafts[0]?.type;
  return isSingle && type ? i18n._(SEND_LABELS[type]) : t`Send ${drafts.length} decisions`;
}

interface ToolCallFieldsProps {
  review: ToolReview;
  /** Position among several calls. Empty for a single call. */
  position: string;
  draft: DecisionDraft;
  busy: boolean;
  onChoose(type: DecisionType): void;
  onChange(part: Partial<DecisionDraft>): void;
}

function ToolCallFields({ review, position, draft, busy, onChoose, onChange }: ToolCallFieldsProps) {
  const name = `${review.name}${position}`;
  return (
    <fieldset className="input-request-call">
      {/* The prompt names a single call. */}
      <legend className={position ? undefined : "visually-hidden"}>
        <code>{review.name}</code>
        {position && <span className="input-request-note">{position}</span>}
      </legend>
      {review.description && (
        <p dir="auto" className="input-request-description">
          {review.description}
        </p>
      )}
      {draft.type === "edit" ? (
        <ArgsEditor name={name} args={draft.args} onChange={(args) => onChange({ args })} />
      ) : (
        <pre className="input-request-detail">
          {review.args === null ? t`The arguments are too long to show.` : formatArgs(review.args)}
        </pre>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset within the fieldset would be a second group to step into */}
      <div className="input-request-actions" role="group" aria-label={t`Decision on ${name}`}>
        {allowedDecisions(review).map((type) => (
          <button
            key={type}
            type="button"
            className={buttonClass(type, position === "" && draft.type === null)}
            aria-pressed={draft.type === type}
            disabled={busy}
            onClick={() => onChoose(type)}
          >
            {i18n._(DECISION_LABELS[type])}
          </button>
        ))}
      </div>
      {draft.type !== null && <DecisionMessage type={draft.type} name={name} draft={draft} onChange={onChange} />}
    </fieldset>
  );
}

/** `isOnlySubmit` means that no other button sends the response. */
function buttonClass(type: DecisionType, isOnlySubmit: boolean): string {
  if (type === "reject") return "btn danger";
  return isOnlySubmit && type === "approve" ? "btn primary" : "btn";
}

function ArgsEditor({ name, args, onChange }: { name: string; args: string; onChange(args: string): void }) {
  const id = useId();
  const problem = findArgsError(args);
  return (
    <>
      <textarea
        className="field input-request-json"
        aria-label={t`Arguments of ${name}, as JSON`}
        aria-invalid={problem !== null}
        aria-describedby={problem ? id : undefined}
        rows={Math.min(14, Math.max(3, args.split("\n").length))}
        spellCheck={false}
        value={args}
        onChange={(event) => onChange(event.target.value)}
      />
      {problem && (
        <p id={id} className="input-request-error">
          {problem}
        </p>
      )}
    </>
  );
}

interface DecisionMessageProps {
  type: DecisionType;
  name: string;
  draft: DecisionDraft;
  onChange(part: Partial<DecisionDraft>): void;
}

function DecisionMessage({ type, name, draft, onChange }: DecisionMessageProps) {
  if (type !== "reject" && type !== "respond") return null;
  const label = type === "reject" ? t`Reason for rejecting ${name}` : t`Response instead of ${name}`;
  return (
    <textarea
      dir="auto"
      className="field"
      aria-label={label}
      placeholder={type === "reject" ? t`Optional reason…` : t`Result that the call should return…`}
      rows={2}
      value={draft.message}
      onChange={(event) => onChange({ message: event.target.value })}
    />
  );
}
