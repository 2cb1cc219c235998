import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { RunDetail } from "@/shared/api/runs";
import { type StepWithPayload, stepsWithPayloadQuery } from "@/shared/api/step-payloads";
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
    <section className="graph-state" aria-label={t`Context`}>
      <h2 className="label">
        <Trans>Context</Trans>
      </h2>
      <Loaded
        query={steps}
        label={t`the context`}
        empty={(loaded) =>
          lastTurn(loaded) === 0 ? (
            <p className="quiet">
              <Trans>The first record appears after the first turn.</Trans>
            </p>
          ) : null
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
          <Trans>
            After turn <b className="num">{turn}</b>
          </Trans>
          <input
            type="range"
            min={1}
            max={turns}
            value={turn}
            onChange={(event) => setSelectedTurn(Number(event.target.value))}
          />
        </label>
        <span className="quiet num">
          <Trans>
            <Plural value={live} one="# record" other="# records" /> in the context, {records.length - live} removed
          </Trans>
        </span>
      </div>
      <ol className="graph-state-list">
        {records.map((record) => (
          <li key={record.id} className={`context-record ${record.status === "live" ? "" : "inactive"}`}>
            <button type="button" onClick={() => onPick(record.seq)}>
              <span className="mono context-id">{record.id}</span>
              <span className="context-body">
                <span dir="auto" className="context-action">
                  {record.action}
                </span>
                {record.observation && (
                  <span dir="auto" className="quiet">
                    {record.observation}
                  </span>
                )}
                {record.note && (
                  <span dir="auto" className="context-note">
                    {record.note}
                  </span>
                )}
              </span>
              <RecordStatusTag record={record} />
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

const STATUS_NAMES: Record<ContextRecord["status"], MessageDescriptor> = {
  live: msg`in the context`,
  pruned: msg`pruned`,
  discarded: msg`discarded`,
  summarized: msg`summarized`,
};

function RecordStatusTag({ record }: { record: ContextRecord }) {
  if (record.status === "live")
    return (
      <span className="context-status live">
        <Trans>in the context</Trans>
      </span>
    );
  return (
    <span className="context-status num">
      <Trans>
        {i18n._(STATUS_NAMES[record.status])} in turn {record.removedInTurn}
      </Trans>
    </span>
  );
}
