import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type WholeStep, wholeStepsQuery } from "@/shared/api/flow";
import type { RunDetail } from "@/shared/api/runs";
import { counted } from "@/shared/format/numbers";
import { Loaded } from "@/shared/ui/loaded";
import { type ContextRecord, contextAt, lastTurn } from "./context-records";

interface ContextViewProps {
  run: RunDetail;
  last: number;
  active: boolean;
  onPick(seq: number): void;
}

/** What the agent had before it after a turn, and what it had put away by then. */
export function ContextView({ run, last, active, onPick }: ContextViewProps) {
  const steps = useQuery(wholeStepsQuery(run.id, ["turn", "tool", "memory"], last, active));
  return (
    <section className="flow" aria-label="Context">
      <Loaded
        query={steps}
        what="the context"
        empty={(known) =>
          lastTurn(known) === 0 ? <p className="quiet">Its first record appears here after its first turn.</p> : null
        }
      >
        {(known) => <Records steps={known} onPick={onPick} />}
      </Loaded>
    </section>
  );
}

function Records({ steps, onPick }: { steps: readonly WholeStep[]; onPick(seq: number): void }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const turns = lastTurn(steps);
  const turn = chosen ?? turns;
  const records = contextAt(steps, turn);
  const live = records.filter((record) => record.fate === "live").length;

  return (
    <>
      <div className="flow-head">
        <label>
          After turn <b className="num">{turn}</b>
          <input
            type="range"
            min={1}
            max={turns}
            value={turn}
            onChange={(event) => setChosen(Number(event.target.value))}
          />
        </label>
        <span className="quiet num">
          {counted(live, "record")} in the context, {records.length - live} put away
        </span>
      </div>
      <ol className="flow-list">
        {records.map((record) => (
          <li key={record.id} className={`context-record ${record.fate === "live" ? "" : "gone"}`}>
            <button type="button" onClick={() => onPick(record.seq)}>
              <span className="mono context-id">{record.id}</span>
              <span className="context-body">
                <span className="context-action">{record.action}</span>
                {record.observation && <span className="quiet">{record.observation}</span>}
                {record.note && <span className="context-note">{record.note}</span>}
              </span>
              <Fate record={record} />
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

function Fate({ record }: { record: ContextRecord }) {
  if (record.fate === "live") return <span className="context-fate live">in the context</span>;
  return (
    <span className="context-fate num">
      {record.fate} in turn {record.until}
    </span>
  );
}
