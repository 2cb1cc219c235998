import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type UseMutationResult, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import {
  type InputRequest,
  type InputResponse,
  inputRequestsQuery,
  respondToInputRequest,
} from "@/shared/api/input-requests";
import type { RunDetail } from "@/shared/api/runs";
import { formatDuration } from "@/shared/format/numbers";
import { requestTexts } from "@/shared/texts/request-texts";
import { deleteDraft } from "@/shared/ui/drafts";
import { useNow } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { ApprovalResponse } from "./approval-response";
import { PlanReview } from "./plan-review";
import { SchemaForm } from "./schema-form";
import { TextResponse } from "./text-response";
import { ToolCallReview } from "./tool-call-review";
import "./input-requests.css";

/** Pending input requests of a run, above the message bar. */
export function PendingInputRequests({ run }: { run: RunDetail }) {
  const requests = useQuery(inputRequestsQuery(run.id));
  useHotkeys([
    {
      keys: "g i",
      description: t`Go to the input request`,
      run: () => document.querySelector<HTMLElement>(".input-requests :is(input, textarea, button)")?.focus(),
    },
  ]);
  return (
    <section className="input-requests" aria-label={t`Input requests`} aria-live="polite">
      <Loaded query={requests} label={t`the input requests`}>
        {({ items }) =>
          items
            .filter((question) => question.pending)
            .map((request) => <InputRequestCard key={request.number} runId={run.id} request={request} />)
        }
      </Loaded>
    </section>
  );
}

const INTRODUCTIONS: Record<InputRequest["kind"], MessageDescriptor> = {
  free_text: msg`The run requests input`,
  approval: msg`The run requests approval`,
  plan_review: msg`The run requests a plan review`,
  tool: msg`A rule requires your decision on this tool call`,
  interrupt: msg`The run requests input`,
};

function InputRequestCard({ runId, request }: { runId: string; request: InputRequest }) {
  const client = useQueryClient();
  const draft = `input-response.${runId}.${request.number}`;
  const response = useMutation({
    mutationFn: (body: InputResponse) => respondToInputRequest(runId, request.number, body),
    onSuccess: () => deleteResponseDrafts(draft),
    // The pending requests are loaded again, also if another user responded first.
    onSettled: () => {
      client.invalidateQueries({ queryKey: ["input-requests", runId] });
      client.invalidateQueries({ queryKey: ["run", runId] });
    },
  });
  return (
    <RequestCard
      headingId={`input-request-${request.number}`}
      label={
        <>
          {request.response_form?.reviews.length
            ? t`The run is waiting for your decision`
            : i18n._(INTRODUCTIONS[request.kind])}
          <DefaultCountdown at={request.default_at} />
        </>
      }
      request={request}
      draft={draft}
      response={response}
    />
  );
}

/** Delete what a person entered for a response that was sent. `draft` begins the names of its parts. */
export function deleteResponseDrafts(draft: string) {
  for (const part of ["text", "comment", "decisions", "fields"]) deleteDraft(`${draft}.${part}`);
}

interface RequestCardProps {
  headingId: string;
  label: ReactNode;
  request: InputRequest;
  draft: string;
  response: Pick<UseMutationResult<unknown, Error, InputResponse>, "isPending" | "error" | "mutate">;
}

/** What is asked of a person, with the form of the response. */
export function RequestCard({ headingId, label, request, draft, response }: RequestCardProps) {
  const { prompt, detail } = requestTexts(request);
  return (
    <article className="input-request-card" aria-labelledby={headingId}>
      <p className="label">{label}</p>
      <h2 dir="auto" id={headingId}>
        {prompt}
      </h2>
      {detail && hasVisibleDetail(request) && (
        <pre dir="auto" className="input-request-detail">
          {detail}
        </pre>
      )}
      <ResponseForm
        request={request}
        draft={draft}
        busy={response.isPending}
        onRespond={(body) => response.mutate(body)}
      />
      <ProblemNote error={response.error} />
    </article>
  );
}

/** The detail of an interrupt is its whole value. A form that shows all arguments repeats it. */
function hasVisibleDetail({ response_form: form }: InputRequest): boolean {
  return !form?.reviews.length || form.reviews.some((review) => review.args === null);
}

/** Time until the input request takes its default. */
function DefaultCountdown({ at }: { at: string | null }) {
  const now = useNow(1_000, at !== null);
  if (at === null) return null;
  const left = Math.max(0, (Date.parse(at) - now) / 1000);
  return (
    <span className="num">
      {" "}
      <Trans>· continues with the default in {formatDuration(left)}</Trans>
    </span>
  );
}

export interface ResponseFormProps {
  request: InputRequest;
  /** Name under which typed text survives a reload. */
  draft: string;
  busy: boolean;
  onRespond(response: InputResponse): void;
}

/** The form of a response, as the input request needs it. */
function ResponseForm(props: ResponseFormProps) {
  const { kind, response_form: form } = props.request;
  if (form?.reviews.length) return <ToolCallReview {...props} form={form} />;
  if (form?.response_schema) return <SchemaForm {...props} schema={form.response_schema} />;
  if (kind === "plan_review") return <PlanReview {...props} />;
  if (kind === "approval" || kind === "tool") return <ApprovalResponse {...props} />;
  return <TextResponse {...props} />;
}
