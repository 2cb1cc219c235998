import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { FormEvent } from "react";
import type { Run, RunDetail, RunRequest } from "@/shared/api/runs";
import { useCreateRun } from "@/shared/api/use-create-run";
import { Button } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { useDraft } from "@/shared/ui/drafts";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./ask.module.css";

/** A part of a report, and what to do about it. */
export interface Asked {
  kind: "question" | "research";
  excerpt: string;
}

/** Maximum length of a part of a report in a question. */
const MAX_EXCERPT_CHARS = 2_000;

interface AskDialogProps {
  run: RunDetail;
  /** `null` means that the dialog is closed. */
  asked: Asked | null;
  onClose(): void;
  /** Builds the request of a follow-up in the thread of the run. */
  buildFollowUp(question: string, kind: Asked["kind"]): Promise<RunRequest>;
  onRunCreated(run: Run): void;
}

/** Asks about a part of the report, or has the run research it further, as a follow-up in the thread. */
export function AskDialog({ asked, onClose, ...rest }: AskDialogProps) {
  const isQuestion = asked?.kind === "question";
  return (
    <Dialog
      open={asked !== null}
      onClose={onClose}
      title={isQuestion ? t`Ask about this part of the report` : t`Dig deeper here`}
    >
      {asked && <AskForm key={asked.excerpt} asked={asked} onClose={onClose} {...rest} />}
    </Dialog>
  );
}

function AskForm({ run, asked, onClose, buildFollowUp, onRunCreated }: AskDialogProps & { asked: Asked }) {
  const [text, setText] = useDraft(`report-ask.${run.id}.${asked.kind}`, "");
  const isQuestion = asked.kind === "question";
  const submission = useCreateRun(
    (words: string) => buildFollowUp(buildQuestion(words, asked), asked.kind),
    (created) => {
      setText("");
      onClose();
      onRunCreated(created);
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    submission.mutate(text.trim());
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <blockquote dir="auto" className={styles.excerpt}>
        {asked.excerpt}
      </blockquote>
      <textarea
        dir="auto"
        className="field"
        rows={3}
        aria-label={isQuestion ? t`Your question` : t`What to look for`}
        placeholder={isQuestion ? t`Your question` : t`What to look for (optional)`}
        maxLength={4000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <p className="quiet">
        {isQuestion
          ? t`The answer comes from the latest version of the report and the passages that the run has read.`
          : t`New research is merged into the latest version of the report. The result says what changed.`}
      </p>
      <ProblemNote error={submission.error} />
      <div className="actions">
        <Button onClick={onClose}>
          <Trans>Cancel</Trans>
        </Button>
        <Button kind="primary" type="submit" disabled={submission.isPending || (isQuestion && text.trim().length < 3)}>
          {isQuestion ? t`Ask` : t`Research this`}
        </Button>
      </div>
    </form>
  );
}

/** Return the question of the follow-up, with the part of the report that it is about. */
export function buildQuestion(words: string, { kind, excerpt }: Asked): string {
  const part = excerpt.length > MAX_EXCERPT_CHARS ? `${excerpt.slice(0, MAX_EXCERPT_CHARS).trimEnd()}…` : excerpt;
  const request = words || (kind === "research" ? t`Research this part of the report further.` : "");
  return [request, t`This is about this part of the report: “${part}”`].filter(Boolean).join("\n\n");
}
