import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useEffect } from "react";
import { stepTexts } from "@/shared/format/step-texts";
import { findSeqs, parseMark } from "@/shared/minimap/marks";
import { listLoadedSteps, type StepLog, stepAt } from "@/shared/stream/step-log";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { buildPlanItems } from "./plan-items";
import { PlanOutline } from "./plan-outline";
import "./plan-rail.css";

interface PlanRailProps {
  runId: string;
  log: StepLog;
  marks: string;
  active: boolean;
  selected: number | null;
  loadRange(from: number, to: number): void;
  onPick(seq: number): void;
}

/** Maximum number of plan steps and memory records shown. */
const MAX_PLANS = 60;
const MAX_MEMORY_RECORDS = 40;

/** The plan as an outline, the planned steps, and the memory records of the run. */
export function PlanRail({ runId, log, marks, active, selected, loadRange, onPick }: PlanRailProps) {
  const plans = findSeqs(marks, ["p"]);
  const visiblePlans = plans.slice(-MAX_PLANS);
  const memories = findSeqs(marks, ["m"]);
  const visibleMemories = memories.slice(-MAX_MEMORY_RECORDS);
  const firstSeq = Math.min(
    visiblePlans[0] ?? Number.POSITIVE_INFINITY,
    visibleMemories[0] ?? Number.POSITIVE_INFINITY,
  );
  useEffect(() => {
    if (Number.isFinite(firstSeq)) loadRange(firstSeq, marks.length);
  }, [loadRange, firstSeq, marks.length]);

  const items = buildPlanItems(visiblePlans, marks.length, active);
  const current = items.findLast((item) => selected !== null && item.seq <= selected);
  const selectRelative = (offset: number) => {
    const at = current ? items.indexOf(current) : items.length;
    const next = items[Math.min(items.length - 1, Math.max(0, at + offset))];
    if (next) onPick(next.seq);
  };
  useHotkeys([
    { keys: "[", description: t`Previous plan item`, run: () => selectRelative(-1) },
    { keys: "]", description: t`Next plan item`, run: () => selectRelative(1) },
  ]);

  return (
    <>
      <section aria-label={t`Plan`}>
        <h2 className="label">
          <Trans>Plan</Trans>
        </h2>
        <PlanOutline runId={runId} active={active} onPick={onPick} />
      </section>
      <section aria-label={t`Planned steps`} className="planned">
        <h2 className="label">
          <Trans>Planned steps</Trans>
        </h2>
        {items.length === 0 && (
          <p className="quiet plan-empty">
            {active ? t`The first planned step appears here.` : t`No steps were planned.`}
          </p>
        )}
        {plans.length > visiblePlans.length && (
          <p className="quiet plan-empty num">
            <Trans>{plans.length - visiblePlans.length} earlier plans in the timeline</Trans>
          </p>
        )}
        <ol className="plan">
          {items.map((item) => (
            <li key={item.seq}>
              <button
                type="button"
                aria-current={item === current ? "step" : undefined}
                onClick={() => onPick(item.seq)}
              >
                <span className={`tick ${item.state}`}>
                  <span className="visually-hidden">{i18n._(STATE_LABELS[item.state])}</span>
                </span>
                <span dir="auto" className="plan-title">
                  {stepAt(log, item.seq)?.title ?? t`Step ${item.seq}`}
                </span>
                <span className="num quiet" title={t`${item.steps} steps`}>
                  {item.steps}
                </span>
              </button>
            </li>
          ))}
        </ol>
      </section>
      <section aria-label={t`Memory`} className="memory">
        <h2 className="label">
          <Trans>Memory</Trans> <span className="num">{memories.length || ""}</span>
        </h2>
        {memories.length === 0 && (
          <p className="quiet plan-empty">{active ? t`Memory records appear here.` : t`No memory records.`}</p>
        )}
        <ol>
          {listLoadedSteps(log, visibleMemories)
            .filter((step) => parseMark(marks[step.seq - 1]) === "m")
            .reverse()
            .map((step) => ({ seq: step.seq, ...stepTexts(step) }))
            .map(({ seq, title, detail }) => (
              <li key={seq}>
                <button type="button" onClick={() => onPick(seq)}>
                  <span dir="auto">{title}</span>
                  {detail && (
                    <span dir="auto" className="quiet">
                      {detail}
                    </span>
                  )}
                </button>
              </li>
            ))}
        </ol>
      </section>
    </>
  );
}

const STATE_LABELS = { done: msg`done`, now: msg`in progress` };
