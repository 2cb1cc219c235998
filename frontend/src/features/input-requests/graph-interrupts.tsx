import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { InputRequest, InputResponse } from "@/shared/api/input-requests";
import { type GraphInterrupt, langGraphRunQuery, respondToInterrupt } from "@/shared/api/langgraph-runs";
import type { Run, RunDetail } from "@/shared/api/runs";
import { Loaded } from "@/shared/ui/loaded";
import { deleteResponseDrafts, RequestCard } from "./pending-input-requests";
import "./input-requests.css";

interface GraphInterruptsProps {
  run: RunDetail;
  onRunCreated(run: Run): void;
}

/** The interrupts at which a run of a LangGraph client ended. A response starts the run that continues. */
export function GraphInterrupts({ run, onRunCreated }: GraphInterruptsProps) {
  const state = useQuery(langGraphRunQuery(run.id, run.last_seq));
  if (state.isPending || state.data?.interrupts.length === 0) return null; // most runs have none
  return (
    <section className="input-requests" aria-label={t`Interrupts`} aria-live="polite">
      <Loaded query={state} label={t`the interrupts`}>
        {({ interrupts }) =>
          interrupts.map((interrupt) => (
            <InterruptCard key={interrupt.id} run={run} interrupt={interrupt} onRunCreated={onRunCreated} />
          ))
        }
      </Loaded>
    </section>
  );
}

function InterruptCard({ run, interrupt, onRunCreated }: GraphInterruptsProps & { interrupt: GraphInterrupt }) {
  const client = useQueryClient();
  const draft = `interrupt-response.${run.id}.${interrupt.id}`;
  const response = useMutation({
    mutationFn: (body: InputResponse) => respondToInterrupt(run.id, interrupt.id, body),
    onSuccess: (resumed) => {
      deleteResponseDrafts(draft);
      onRunCreated(resumed);
    },
    // It is loaded again also if another client responded first.
    onSettled: () => {
      client.invalidateQueries({ queryKey: ["langgraph-run", run.id] });
      client.invalidateQueries({ queryKey: ["run", run.id] }); // it does not wait for a person any more
      client.invalidateQueries({ queryKey: ["thread", run.thread_id] });
    },
  });
  return (
    <RequestCard
      headingId={`interrupt-${interrupt.id}`}
      label={<Trans>The graph stopped at an interrupt. Your response starts a run that continues from it.</Trans>}
      request={asInputRequest(interrupt, run)}
      draft={draft}
      response={response}
    />
  );
}

/** An interrupt takes the same responses as an input request of the kind `interrupt`. */
function asInputRequest(interrupt: GraphInterrupt, run: RunDetail): InputRequest {
  return {
    number: 0,
    kind: "interrupt",
    prompt: interrupt.prompt,
    detail: interrupt.detail,
    choices: [],
    steps: [],
    texts: {},
    response_form: interrupt.response_form,
    pending: true,
    requested_at: run.ended_at ?? run.created_at,
    default_at: null,
    response: null,
  };
}
