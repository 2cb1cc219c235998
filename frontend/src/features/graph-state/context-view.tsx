import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { RunDetail } from "@/shared/api/runs";
import { type StepWithPayload, stepsWithPayloadQuery } from "@/shared/api/step-payloads";
import { pluralize } from "@/shared/format/numbers";
import { Loaded } from "@/shared/ui/loaded";
import { type ContextRecord, lastTurn, recordsAfterTurn } from "./context-records";

interface ContextViewProps {
  run: RunDetail;
  last: number;
  active: boolean;
  onPick(seq: number): void;
}

/** Shows the context of the agent after a turn and the records that had left it by then. */
export function ContextView({ run, last, active, onPick }: ContextViewProps) {
  const steps = useQuery(stepsWithPayloadQuery(run.id, ["role_call", "tool_result", "memory"], last, active));
  return (
    <section className="graph-state" aria-label="Context">
      <h2 className="label">Context</h2>
      <Loaded
        query={steps}
        label="the context"
        empty={(loaded) =>
          lastTurn(loaded) === 0 ? <p className="quiet">The first record appears after the first turn.</p> : null
        }
      >
        {(loaded) => <Records steps={loaded} onPick={onPick} />}
      </Loaded>
    </section>
  );
}

function Records({ steps, onPick }: { steps: readonly StepWithPayload[]; onPick(seq: number): void }) {
  const [selectedTurn, setSelectedTurn] = useState<number | null>(null);
  const turns = lastTurn(steps);
  const turn = selectedTurn ?? turns;
  const records = recordsAfterTurn(steps, turn);
  const live = records.filter((record) => record.status === "live").length;

  return (
    <>
      <div className="graph-state-head">
        <label>
          After turn <b className="num">{turn}</b>
          <input
            type="range"
            min={1}
            max={turns}
            value={turn}
            onChange={(event) => setSelectedTurn(Number(event.target.value))}
          />
        </label>
        <span className="quiet num">
          {pluralize(live, "record")} in the context, {records.length - live} removed
        </span>
      </div>
      <ol className="graph-state-list">
        {records.map((record) => (
          <li key={record.id} className={`context-record ${record.status === "live" ? "" : "inactive"}`}>
            <button type="button" onClick={() => onPick(record.seq)}>
              <span className="mono context-id">{record.id}</span>
              <span className="context-body">
                <span className="context-action">{record.action}</span>
                {record.observation && <span className="quiet">{record.observation}</span>}
                {record.note && <span className="context-note">{record.note}</span>}
              </span>
              <RecordStatusTag record={record} />
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

function RecordStatusTag({ record }: { record: ContextRecord }) {
  if (record.status === "live") return <span className="context-status live">in the context</span>;
  return (
    <span className="context-status num">
      {record.status} in turn {record.removedInTurn}
    </span>
  );
}
