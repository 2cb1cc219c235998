import { useQuery } from "@tanstack/react-query";
import { wholeStepsQuery } from "@/shared/api/flow";
import type { RunDetail } from "@/shared/api/runs";
import { Loaded } from "@/shared/ui/loaded";

interface MemoryViewProps {
  run: RunDetail;
  last: number;
  active: boolean;
  onPick(seq: number): void;
}

/** The run's memory records as the roles are shown them. */
export function MemoryView({ run, last, active, onPick }: MemoryViewProps) {
  const steps = useQuery(wholeStepsQuery(run.id, ["memory"], last, active));
  return (
    <section className="flow" aria-label="Memory records">
      <Loaded
        query={steps}
        what="the memory"
        empty={(kept) => (kept.length === 0 ? <p className="quiet">What it decides to keep appears here.</p> : null)}
      >
        {(kept) => (
          <ol className="flow-list">
            {kept.map((step) => (
              <li key={step.seq} className="context-record">
                <button type="button" onClick={() => onPick(step.seq)}>
                  <span className="mono context-id">{step.turn}</span>
                  <span className="context-body">
                    <span className="context-action">{String(step.payload.sub_goal ?? step.title)}</span>
                    <span className="context-note">{String(step.payload.finding ?? step.detail)}</span>
                  </span>
                  <span className="context-fate mono">{String(step.payload.tool ?? "")}</span>
                </button>
              </li>
            ))}
          </ol>
        )}
      </Loaded>
    </section>
  );
}
