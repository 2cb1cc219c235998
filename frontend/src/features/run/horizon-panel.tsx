import { hasEnded, type RunDetail } from "@/shared/api/runs";
import { expectedSteps } from "@/shared/horizon/geometry";
import { LEGEND, type Letter, letterOf, seqsWith } from "@/shared/horizon/marks";
import { HorizonScrubber } from "@/shared/horizon/scrubber";
import { type StepLog, stepAt } from "@/shared/stream/step-log";
import { useMediaQuery } from "@/shared/ui/hooks";
import "./horizon-panel.css";

interface HorizonPanelProps {
  run: RunDetail;
  log: StepLog;
  marks: string;
  selected: number | null;
  view: readonly [number, number] | null;
  /** Letters the timeline is narrowed to. Empty: all. */
  only: string;
  onPick(seq: number): void;
  onOnly(letters: string): void;
}

/** The run's horizon with its legend; a kind in the legend narrows the timeline to it. */
export function HorizonPanel({ run, log, marks, selected, view, only, onPick, onOnly }: HorizonPanelProps) {
  const narrow = useMediaQuery("(max-width: 900px)");
  const ended = hasEnded(run);
  return (
    <section className="horizon-panel" aria-label="Horizon">
      <HorizonScrubber
        marks={marks}
        steps={expectedSteps(marks.length, run.budget.turns, ended)}
        selected={selected}
        view={view}
        active={!ended}
        height={narrow ? 58 : 78}
        titleOf={(seq) => stepAt(log, seq)?.title ?? ""}
        onPick={onPick}
      />
      <div className="legend">
        {LEGEND.map(({ letters, name, color }) => {
          const count = seqsWith(marks, letters).length;
          const on = letters.some((letter) => only.includes(letter));
          return (
            <button
              key={name}
              type="button"
              aria-pressed={on}
              disabled={count === 0}
              title={on ? "Show all steps" : `Show only these in the timeline`}
              onClick={() => onOnly(on ? "" : letters.join(""))}
            >
              <i style={{ background: `var(${color})` }} />
              {name} <span className="num">{count}</span>
            </button>
          );
        })}
        <span className="legend-note">{resumedNote(marks, log)}</span>
      </div>
    </section>
  );
}

/** What the last upright was for, where that is known. */
function resumedNote(marks: string, log: StepLog): string {
  const uprights = seqsWith(marks, ["h" satisfies Letter]);
  const last = uprights.findLast((seq) => stepAt(log, seq)?.kind === "resumed");
  const step = last === undefined ? undefined : stepAt(log, last);
  return step && letterOf(marks[step.seq - 1]) === "h" ? `${step.title} · at ${step.seq}` : "";
}
