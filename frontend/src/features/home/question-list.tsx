import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { runStatisticsQuery } from "@/shared/api/asking";
import { ProblemError } from "@/shared/api/client";
import { createRun } from "@/shared/api/runs";
import { formatUsd } from "@/shared/format/numbers";
import { Link } from "@/shared/routing/routing";
import { randomId } from "@/shared/stream/browser";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { useDraft } from "@/shared/ui/drafts";
import { Failure } from "@/shared/ui/loaded";
import { describeAmount, expect } from "./expectation";
import styles from "./options.module.css";
import { buildRunRequest, type QuestionDraft, type RequestParts } from "./request";
import { loadRequestParts } from "./request-parts";
import { MAX_QUESTIONS, splitQuestions, validateLine } from "./several";

interface QuestionListProps {
  /** The form. Its question is the text with one question per line. */
  draft: QuestionDraft;
  /** Check a draft and show its errors. Returns whether it is valid. */
  onCheck(draft: QuestionDraft): boolean;
  /** Called with the reason if no question was sent. */
  onProblem(error: unknown): void;
  /** Replace the text, so that only the questions are left that have no run. */
  onText(text: string): void;
  /** Called when the person is done with the results and every question has a run. */
  onDone(): void;
}

/** The result of a question: the run that it became, or why it did not. */
interface Result {
  question: string;
  runId: string | null;
  problem: string;
}

/** The runs of a list of questions: how many they will be, what they may cost, and the result of each. */
export function QuestionList({ draft, onCheck, onProblem, onText, onDone }: QuestionListProps) {
  const client = useQueryClient();
  const statistics = useQuery(runStatisticsQuery);
  const [isConfirming, setConfirming] = useState(false);
  const [isSending, setSending] = useState(false);
  const [results, setResults] = useDraft<Result[]>("question.results", []);
  // A line that is sent again after a lost response creates no second run.
  const keys = useRef(new Map<string, string>());
  const questions = splitQuestions(draft.question);
  const invalid = questions.filter((question) => validateLine(question) !== null);
  const isTooLong = questions.length > MAX_QUESTIONS;
  const canAsk = questions.length > 0 && !isTooLong && invalid.length === 0;
  const expectation = statistics.data ? expect(statistics.data.items, draft) : null;

  const ask = async (question: string, parts: RequestParts): Promise<Result> => {
    try {
      const request = buildRunRequest({ ...draft, question }, parts);
      const text = JSON.stringify(request);
      const key = keys.current.get(text) ?? randomId();
      keys.current.set(text, key);
      const run = await createRun(request, key);
      return { question, runId: run.id, problem: "" };
    } catch (error) {
      return { question, runId: null, problem: describeProblem(error) };
    }
  };
  const askAll = async () => {
    setConfirming(false);
    setSending(true);
    const done: Result[] = results.filter(({ runId }) => runId !== null);
    try {
      // Once for all of them, so that they have the same tool policy.
      const parts = await loadRequestParts(client, draft);
      for (const question of questions) {
        done.push(await ask(question, parts));
        setResults([...done]);
      }
      onText(done.flatMap(({ question, runId }) => (runId ? [] : [question])).join("\n"));
    } catch (error) {
      const problem = describeProblem(error);
      setResults([...done, ...questions.map((question) => ({ question, runId: null, problem }))]);
      onProblem(error);
    }
    setSending(false);
    client.invalidateQueries({ queryKey: ["runs"] });
  };
  const start = () => {
    if (canAsk && onCheck({ ...draft, question: questions[0] ?? "" })) setConfirming(true);
  };

  return (
    <section className={styles.several} aria-label={t`Several questions`}>
      {questions.length > 0 && (
        <p className={styles.note}>
          {plural(questions.length, { one: "# question", other: "# questions" })}
          {invalid.length > 0 && (
            <span className={styles.error}>
              {" "}
              <Trans>A question needs 3 to 8,000 characters. Change or remove “{shorten(invalid[0] ?? "")}”.</Trans>
            </span>
          )}
          {isTooLong && (
            <span className={styles.error}>
              {" "}
              <Trans>At most {MAX_QUESTIONS} can be asked at once.</Trans>
            </span>
          )}
        </p>
      )}
      <div className={styles.actions}>
        <Button kind="primary" disabled={!canAsk || isSending} onClick={start}>
          {describeButton(isSending, questions.length)}
        </Button>
        {results.length > 0 && !isSending && (
          <Button
            kind="plain"
            onClick={() => {
              setResults([]);
              if (questions.length === 0) onDone();
            }}
          >
            <Trans>Clear the results</Trans>
          </Button>
        )}
      </div>
      {results.length > 0 && (
        <ul className={styles.results} aria-live="polite">
          {results.map(({ question, runId, problem }) => (
            <li key={question}>
              {runId ? (
                <Link to="/runs/$runId" params={{ runId }} dir="auto">
                  {question}
                </Link>
              ) : (
                <>
                  <span dir="auto">{question}</span>
                  <span className={styles.error}>{problem}</span>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
      {isConfirming && (
        <Dialog
          open
          onClose={() => setConfirming(false)}
          title={plural(questions.length, { one: "Ask # question", other: "Ask # questions" })}
        >
          <div className={styles.dialog}>
            <p>
              {plural(questions.length, {
                one: "It becomes a run with the options of the form.",
                other: "Each becomes a run of its own, with the options of the form.",
              })}
            </p>
            <p>{describeTotal(expectation && describeAmount(expectation, questions.length))}</p>
            <p>{describeLimit(draft, questions.length)}</p>
            <Failure query={statistics} />
            <div className={styles.actions}>
              <Button kind="primary" onClick={askAll}>
                {plural(questions.length, { one: "Start # run", other: "Start # runs" })}
              </Button>
              <Button kind="plain" onClick={() => setConfirming(false)}>
                <Trans>Cancel</Trans>
              </Button>
            </div>
          </div>
        </Dialog>
      )}
    </section>
  );
}

function describeButton(isSending: boolean, count: number): string {
  if (isSending) return t`Asking…`;
  return count === 0 ? t`Ask` : plural(count, { one: "Ask # question…", other: "Ask # questions…" });
}

/** Describe what all runs take together. `null` means that nothing is known. */
function describeTotal(amount: string | null): string {
  if (amount === null) return t`There are no past runs of this graph to tell time and cost from.`;
  return t`With all of their turns, they take ${amount} together.`;
}

/** Describe what the limits of all runs allow. */
function describeLimit({ usd }: QuestionDraft, count: number): string {
  if (!(Number(usd) > 0)) return t`They have no limit of cost of their own.`;
  return t`Their limits allow at most ${formatUsd(Number(usd) * count)}.`;
}

function describeProblem(error: unknown): string {
  if (!(error instanceof ProblemError)) return String(error);
  return [error.detail || error.title, error.remedy].filter(Boolean).join(" ");
}

const MAX_SHOWN_CHARS = 60;

function shorten(text: string): string {
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text;
}
