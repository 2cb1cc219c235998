import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import type { RunDetail } from "@/shared/api/runs";
import { stepsWithPayloadQuery } from "@/shared/api/step-payloads";
import { Loaded } from "@/shared/ui/loaded";

interface MemoryViewProps {
  run: RunDetail;
  last: number;
  active: boolean;
  onPick(seq: number): void;
}

/** Memory records of the run, as the roles receive them. */
export function MemoryView({ run, last, active, onPick }: MemoryViewProps) {
  const steps = useQuery(stepsWithPayloadQuery(run.id, ["memory"], last, active));
  return (
    <section className="graph-state" aria-label={t`Memory records`}>
      <h2 className="label">
        <Trans>Memory records</Trans>
      </h2>
      <Loaded
        query={steps}
        label={t`the memory records`}
        empty={(records) =>
          records.length === 0 ? (
            <p className="quiet">
              <Trans>Memory records appear here.</Trans>
            </p>
          ) : null
        }
      >
        {(records) => (
          <ol className="graph-state-list">
            {records.map((step) => (
              <li key={step.seq} className="context-record">
                <button type="button" onClick={() => onPick(step.seq)}>
                  <span className="mono context-id">{step.turn}</span>
                  <span className="context-body">
                    <span dir="auto" className="context-action">
                      {String(step.payload.sub_goal ?? step.title)}
                    </span>
                    <span dir="auto" className="context-note">
                      {String(step.payload.finding ?? step.detail)}
                    </span>
                  </span>
                  <span className="context-status mono">{String(step.payload.tool ?? "")}</span>
                </button>
              </li>
            ))}
          </ol>
        )}
      </Loaded>
    </section>
  );
}
