import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { type LangGraphRun, langGraphRunQuery } from "@/shared/api/langgraph-runs";
import type { RunDetail } from "@/shared/api/runs";
import { Loaded } from "@/shared/ui/loaded";
import "./graph-state.css";

/** What a LangGraph client asked of a run, and the values of the state that the run left or has now. */
export function LangGraphState({ run }: { run: RunDetail }) {
  const state = useQuery(langGraphRunQuery(run.id, run.last_seq));
  return (
    <section className="graph-state" aria-label={t`State`}>
      <Loaded query={state} label={t`the state`}>
        {(loaded) => <Parts state={loaded} />}
      </Loaded>
    </section>
  );
}

function Parts({ state }: { state: LangGraphRun }) {
  return (
    <>
      {state.tags.length > 0 && <p className="langgraph-tags">{t`Tags: ${state.tags.join(", ")}`}</p>}
      {state.next_nodes.length > 0 && (
        <p className="langgraph-tags">{t`Nodes that come next: ${state.next_nodes.join(", ")}`}</p>
      )}
      <JsonPart title={t`Values`} value={state.values} />
      {state.values === null && (
        <p className="quiet">
          <Trans>No state is stored, or it was deleted after its time.</Trans>
        </p>
      )}
      <JsonPart title={t`Input`} value={state.input} />
      <JsonPart title={t`Command`} value={state.command} />
      {Object.keys(state.metadata).length > 0 && <JsonPart title={t`Metadata`} value={state.metadata} />}
    </>
  );
}

/** A value as JSON. Nothing is shown for null. */
function JsonPart({ title, value }: { title: string; value: unknown }) {
  if (value === null || value === undefined) return null;
  return (
    <div>
      <h2 className="label">{title}</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached with the keyboard */}
      <pre dir="auto" className="langgraph-json" tabIndex={0}>
        {JSON.stringify(value, null, 2)}
      </pre>
    </div>
  );
}
