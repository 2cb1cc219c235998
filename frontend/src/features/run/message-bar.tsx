import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { type FollowUpKind, hasEnded, type Run, type RunDetail, type Step, sendUserMessage } from "@/shared/api/runs";
import { useCreateRun } from "@/shared/api/use-create-run";
import { listReadMessages } from "@/shared/format/step-texts";
import { findSeqs } from "@/shared/minimap/marks";
import { updateLog } from "@/shared/stream/apply-events";
import { addSteps, type StepLog, stepAt } from "@/shared/stream/step-log";
import { useDraft } from "@/shared/ui/drafts";
import { ProblemNote } from "@/shared/ui/problem-note";
import { buildDeeperRequest, buildFollowUp, describeScope, FOLLOW_UP_KINDS } from "./follow-up";
import "./message-bar.css";

interface MessageBarProps {
  run: RunDetail;
  log: StepLog;
  marks: string;
  onRunCreated(run: Run): void;
}

/** A form for messages to an active run, or for a follow-up question once the run has ended. */
export function MessageBar(props: MessageBarProps) {
  return hasEnded(props.run) ? <FollowUpForm {...props} /> : <UserMessageForm {...props} />;
}

function UserMessageForm({ run, log, marks }: MessageBarProps) {
  const [text, setText] = useDraft(`message.${run.id}`, "");
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: (message: string) => sendUserMessage(run.id, message),
    onSuccess: (step) => {
      setText("");
      updateLog(client, run.id, (current) => addSteps(current, [step]));
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) send.mutate(text.trim());
  };
  return (
    <form className="message-bar" onSubmit={submit} aria-label={t`Message to this run`}>
      <input
        dir="auto"
        id="message-input"
        className="field"
        aria-label={t`Message to the run`}
        placeholder={t`Message to the run: a hint, a source, a change of plan…`}
        maxLength={4000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <LastMessage log={log} marks={marks} />
      <button type="submit" className="btn primary" disabled={send.isPending || !text.trim()}>
        {send.isPending ? t`Sending…` : t`Send`}
      </button>
      <ProblemNote error={send.error} />
    </form>
  );
}

/** The last user message, and when the run read it. */
function LastMessage({ log, marks }: { log: StepLog; marks: string }) {
  const last = findSeqs(marks, ["h"]).findLast((seq) => isMessage(stepAt(log, seq)));
  const step = last === undefined ? undefined : stepAt(log, last);
  if (!step) return null;
  const read = findSeqs(marks, ["n"]).find((seq) => seq > step.seq && hasRead(stepAt(log, seq), step.seq));
  return (
    <span dir="auto" className="message-bar-last" role="status">
      “{step.title}” · {read ? t`read in step ${read}` : t`is read when the next turn begins`}
    </span>
  );
}

/** A run records that it read messages, and names their steps. */
function hasRead(note: Step | undefined, message: number): boolean {
  return note !== undefined && listReadMessages(note).includes(message);
}

/** A change of the plan is a user message, too. The plan says how far it is. */
function isMessage(step: Step | undefined): boolean {
  return step?.kind === "user_message" && step.label !== "plan change";
}

/** A follow-up question in the thread. It states the scope, which is that of this run. */
function FollowUpForm({ run, onRunCreated }: MessageBarProps) {
  const [text, setText] = useDraft(`follow-up.${run.id}`, "");
  const [turns, setTurns] = useDraft(`follow-up.turns.${run.id}`, Math.max(4, run.budget.max_turns));
  const [kind, setKind] = useDraft<FollowUpKind>(`follow-up.kind.${run.id}`, "auto");
  const submission = useCreateRun(
    (question: string) => buildFollowUp(run, question, turns, kind),
    (created) => {
      setText("");
      onRunCreated(created);
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim().length >= 3) submission.mutate(text.trim());
  };
  return (
    <form className="message-bar" onSubmit={submit} aria-label={t`Follow-up question`}>
      <input
        dir="auto"
        id="message-input"
        className="field"
        aria-label={t`Follow-up question`}
        placeholder={t`Ask a follow-up question in this thread…`}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <span className="message-bar-scope" title={t`Uses ${describeScope(run.scope)}, the same scope as this run`}>
        <Trans>Uses {describeScope(run.scope)}</Trans>
      </span>
      {run.title !== null && (
        <select
          className="field message-bar-turns"
          aria-label={t`What the follow-up does`}
          value={kind}
          onChange={(event) => setKind(event.target.value as FollowUpKind)}
        >
          {FOLLOW_UP_KINDS.map((choice) => (
            <option key={choice.kind} value={choice.kind}>
              {i18n._(choice.label)}
            </option>
          ))}
        </select>
      )}
      <select
        className="field message-bar-turns"
        aria-label={t`Turn budget`}
        value={turns}
        onChange={(event) => setTurns(Number(event.target.value))}
      >
        {[...new Set([4, 12, 40, turns])]
          .sort((left, right) => left - right)
          .map((choice) => (
            <option key={choice} value={choice}>
              <Trans>{choice} turns</Trans>
            </option>
          ))}
      </select>
      <button type="submit" className="btn primary" disabled={submission.isPending || text.trim().length < 3}>
        {submission.isPending ? t`Asking…` : t`Ask`}
      </button>
      <ProblemNote error={submission.error} />
    </form>
  );
}

/** Asks the same question again in its thread with the next larger budget. */
export function DigDeeper({ run, onRunCreated }: { run: RunDetail; onRunCreated(run: Run): void }) {
  const submission = useCreateRun(() => buildDeeperRequest(run), onRunCreated);
  return (
    <>
      <button type="button" className="btn small" disabled={submission.isPending} onClick={() => submission.mutate()}>
        <Trans>Dig deeper, up to {buildDeeperRequest(run).budget?.max_turns} turns</Trans>
      </button>
      <ProblemNote error={submission.error} />
    </>
  );
}
