import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { hasEnded, type RunDetail } from "@/shared/api/runs";
import { stepTexts } from "@/shared/format/step-texts";
import { expectedSteps } from "@/shared/minimap/geometry";
import { findSeqs, LEGEND, parseMark, type StepMark } from "@/shared/minimap/marks";
import { StepMinimap } from "@/shared/minimap/step-minimap";
import type { VisibleSteps } from "@/shared/minimap/visible-steps";
import { type StepLog, stepAt } from "@/shared/stream/step-log";
import { useMediaQuery } from "@/shared/ui/hooks";
import "./minimap-panel.css";

interface MinimapPanelProps {
  run: RunDetail;
  log: StepLog;
  marks: string;
  selected: number | null;
  visibleSteps: VisibleSteps;
  /** Step marks that the timeline is filtered by. Empty means all. */
  markFilter: string;
  onPick(seq: number): void;
  onMarkFilter(letters: string): void;
}

/** The step minimap with its legend. A kind in the legend filters the timeline. */
export function MinimapPanel({
  run,
  log,
  marks,
  selected,
  visibleSteps,
  markFilter,
  onPick,
  onMarkFilter,
}: MinimapPanelProps) {
  const narrow = useMediaQuery("(max-width: 900px)");
  const ended = hasEnded(run);
  return (
    <section className="minimap-panel" aria-label={t`Step minimap`}>
      <StepMinimap
        marks={marks}
        steps={expectedSteps(marks.length, run.budget.max_turns, ended)}
        selected={selected}
        view={visibleSteps}
        active={!ended}
        height={narrow ? 58 : 78}
        titleOf={(seq) => stepAt(log, seq)?.title ?? ""}
        onPick={onPick}
      />
      <div className="legend">
        {LEGEND.map(({ marks: legendMarks, name, color }) => {
          const count = findSeqs(marks, legendMarks).length;
          const isOn = legendMarks.some((mark) => markFilter.includes(mark));
          return (
            <button
              key={color}
              type="button"
              aria-pressed={isOn}
              disabled={count === 0}
              title={isOn ? t`Show all steps` : t`Show only these steps in the timeline`}
              onClick={() => onMarkFilter(isOn ? "" : legendMarks.join(""))}
            >
              <i style={{ background: `var(${color})` }} />
              {i18n._(name)} <span className="num">{count}</span>
            </button>
          );
        })}
        <span className="legend-note">{resumeNote(marks, log)}</span>
      </div>
    </section>
  );
}

/** Return what the last resume was for, if that step is loaded. */
function resumeNote(marks: string, log: StepLog): string {
  const markers = findSeqs(marks, ["h" satisfies StepMark]);
  const last = markers.findLast((seq) => stepAt(log, seq)?.kind === "resumed");
  const step = last === undefined ? undefined : stepAt(log, last);
  return step && parseMark(marks[step.seq - 1]) === "h" ? t`${stepTexts(step).title} · step ${step.seq}` : "";
}
