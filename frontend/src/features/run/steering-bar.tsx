import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { hasEnded, type Run, type RunDetail, steerRun } from "@/shared/api/runs";
import { useCreateRun } from "@/shared/api/use-create-run";
import { seqsWith } from "@/shared/horizon/marks";
import { changeLog } from "@/shared/stream/apply-events";
import { type StepLog, stepAt, withSteps } from "@/shared/stream/step-log";
import { useDraft } from "@/shared/ui/drafts";
import { ProblemNote } from "@/shared/ui/problem-note";
import { deeperRequest, followUpRequest, scopeWords } from "./follow-up";
import "./steering-bar.css";

interface SteeringBarProps {
  run: RunDetail;
  log: StepLog;
  marks: string;
  onAsked(run: Run): void;
}

/** Always in reach: a message to the run while it works, a follow-up once it has ended. */
export function SteeringBar(props: SteeringBarProps) {
  return hasEnded(props.run) ? <FollowUp {...props} /> : <Steer {...props} />;
}

function Steer({ run, log, marks }: SteeringBarProps) {
  const [text, setText] = useDraft(`steer.${run.id}`, "");
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: (message: string) => steerRun(run.id, message),
    onSuccess: (step) => {
      setText("");
      changeLog(client, run.id, (held) => withSteps(held, [step]));
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) send.mutate(text.trim());
  };
  return (
    <form className="steer" onSubmit={submit} aria-label="Steer this run">
      <input
        id="steer"
        className="field"
        aria-label="Message to the run"
        placeholder="Steer: a hint, a source, a change of plan …"
        maxLength={4000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <LastMessage log={log} marks={marks} />
      <button type="submit" className="btn primary" disabled={send.isPending || !text.trim()}>
        {send.isPending ? "Sending…" : "Send"}
      </button>
      <ProblemNote error={send.error} />
    </form>
  );
}

/** The last message and the plan that was made after it. */
function LastMessage({ log, marks }: { log: StepLog; marks: string }) {
  const last = seqsWith(marks, ["h"]).findLast((seq) => stepAt(log, seq)?.kind === "human");
  const step = last === undefined ? undefined : stepAt(log, last);
  if (!step) return null;
  const plan = seqsWith(marks, ["p"]).find((seq) => seq > step.seq);
  return (
    <span className="steer-last" role="status">
      “{step.title}” · {plan ? `read before step ${plan}` : "read before the next plan"}
    </span>
  );
}

/** A new question in the run's thread; it reads and uses what this run did, and says so. */
function FollowUp({ run, onAsked }: SteeringBarProps) {
  const [text, setText] = useDraft(`follow.${run.id}`, "");
  const [turns, setTurns] = useDraft(`follow.turns.${run.id}`, Math.max(4, run.budget.turns));
  const ask = useCreateRun(
    (question: string) => followUpRequest(run, question, turns),
    (asked) => {
      setText("");
      onAsked(asked);
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim().length >= 3) ask.mutate(text.trim());
  };
  return (
    <form className="steer" onSubmit={submit} aria-label="Follow-up question">
      <input
        id="steer"
        className="field"
        aria-label="Follow-up question"
        placeholder="Ask a follow-up; it knows this thread …"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <span className="steer-scope" title={`Uses ${scopeWords(run.scope)}, as this run did`}>
        Uses {scopeWords(run.scope)}
      </span>
      <select
        className="field steer-depth"
        aria-label="Depth"
        value={turns}
        onChange={(event) => setTurns(Number(event.target.value))}
      >
        {[...new Set([4, 12, 40, turns])]
          .sort((left, right) => left - right)
          .map((choice) => (
            <option key={choice} value={choice}>
              {choice} turns
            </option>
          ))}
      </select>
      <button type="submit" className="btn primary" disabled={ask.isPending || text.trim().length < 3}>
        {ask.isPending ? "Asking…" : "Ask"}
      </button>
      <ProblemNote error={ask.error} />
    </form>
  );
}

/** The same question again in its thread, with the next larger budget. */
export function DigDeeper({ run, onAsked }: { run: RunDetail; onAsked(run: Run): void }) {
  const ask = useCreateRun(() => deeperRequest(run), onAsked);
  return (
    <>
      <button type="button" className="btn small" disabled={ask.isPending} onClick={() => ask.mutate()}>
        Dig deeper, up to {deeperRequest(run).budget?.turns} turns
      </button>
      <ProblemNote error={ask.error} />
    </>
  );
}
