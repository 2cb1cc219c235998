import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type AnswerRequest, answerQuestion, type Question, questionsQuery } from "@/shared/api/questions";
import type { RunDetail } from "@/shared/api/runs";
import { span } from "@/shared/format/numbers";
import { forgetDraft } from "@/shared/ui/drafts";
import { useNow } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { Decide } from "./decide";
import { FillSchema } from "./fill-schema";
import { ReviewCalls } from "./review-calls";
import { ReviewPlan } from "./review-plan";
import { Say } from "./say";
import "./open-questions.css";

/** What a run asks of whoever reads this page, over the steering bar. */
export function OpenQuestions({ run }: { run: RunDetail }) {
  const questions = useQuery(questionsQuery(run.id));
  useHotkeys([
    {
      keys: "g q",
      does: "Answer what the run asks",
      run: () => document.querySelector<HTMLElement>(".asked input, .asked textarea, .asked button")?.focus(),
    },
  ]);
  return (
    <section className="asked" aria-label="What the run asks" aria-live="polite">
      <Loaded query={questions} what="what the run asks">
        {({ items }) =>
          items
            .filter((question) => question.open)
            .map((question) => <Card key={question.number} run={run.id} question={question} />)
        }
      </Loaded>
    </section>
  );
}

const LEAD: Record<Question["kind"], string> = {
  ask: "The run asks",
  approve: "The run asks for a yes or a no",
  review: "The run shows you its plan",
  tool: "A rule wants you to decide on this call",
  interrupt: "The run asks",
};

function Card({ run, question }: { run: string; question: Question }) {
  const client = useQueryClient();
  const draft = `answer.${run}.${question.number}`;
  const answer = useMutation({
    mutationFn: (given: AnswerRequest) => answerQuestion(run, question.number, given),
    onSuccess: () => {
      for (const part of ["text", "comment", "decisions", "fields"]) forgetDraft(`${draft}.${part}`);
    },
    // Also where somebody else was first: what is open now is asked for again.
    onSettled: () => {
      client.invalidateQueries({ queryKey: ["questions", run] });
      client.invalidateQueries({ queryKey: ["run", run] });
    },
  });
  const name = `asked-${question.number}`;
  return (
    <article className="asked-card" aria-labelledby={name}>
      <p className="label">
        {question.form?.reviews.length ? "The run waits for your decision" : LEAD[question.kind]}
        <Due at={question.due_at} />
      </p>
      <h2 id={name}>{question.prompt}</h2>
      {question.detail && showsDetail(question) && <pre className="asked-detail">{question.detail}</pre>}
      <Form question={question} draft={draft} busy={answer.isPending} onAnswer={(given) => answer.mutate(given)} />
      <ProblemNote error={answer.error} />
    </article>
  );
}

/** The detail of an interrupt is its whole value, which a form with all arguments repeats. */
function showsDetail({ form }: Question): boolean {
  return !form?.reviews.length || form.reviews.some((review) => review.args === null);
}

/** When the question answers itself. */
function Due({ at }: { at: string | null }) {
  const now = useNow(1_000, at !== null);
  if (at === null) return null;
  const left = Math.max(0, (Date.parse(at) - now) / 1000);
  return <span className="num"> · goes on by itself in {span(left)}</span>;
}

export interface FormProps {
  question: Question;
  /** The name under which a reload finds what was typed. */
  draft: string;
  busy: boolean;
  onAnswer(given: AnswerRequest): void;
}

function Form(props: FormProps) {
  const { kind, form } = props.question;
  if (form?.reviews.length) return <ReviewCalls {...props} form={form} />;
  if (form?.response_schema) return <FillSchema {...props} schema={form.response_schema} />;
  if (kind === "review") return <ReviewPlan {...props} />;
  if (kind === "approve" || kind === "tool") return <Decide {...props} />;
  return <Say {...props} />;
}
