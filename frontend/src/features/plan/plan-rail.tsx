import { useEffect } from "react";
import { letterOf, seqsWith } from "@/shared/horizon/marks";
import { heldSteps, type StepLog, stepAt } from "@/shared/stream/step-log";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { planItems } from "./plan-items";
import "./plan-rail.css";

interface PlanRailProps {
  log: StepLog;
  marks: string;
  active: boolean;
  selected: number | null;
  need(from: number, to: number): void;
  onPick(seq: number): void;
}

/** How many of the latest plan steps and memory records are shown. */
const LATEST_PLANS = 60;
const LATEST_MEMORIES = 40;

/** What the run set out to do, turn by turn, and what it keeps in mind. */
export function PlanRail({ log, marks, active, selected, need, onPick }: PlanRailProps) {
  const plans = seqsWith(marks, ["p"]);
  const shownPlans = plans.slice(-LATEST_PLANS);
  const memories = seqsWith(marks, ["m"]);
  const shownMemories = memories.slice(-LATEST_MEMORIES);
  const firstNeeded = Math.min(shownPlans[0] ?? Number.POSITIVE_INFINITY, shownMemories[0] ?? Number.POSITIVE_INFINITY);
  useEffect(() => {
    if (Number.isFinite(firstNeeded)) need(firstNeeded, marks.length);
  }, [need, firstNeeded, marks.length]);

  const items = planItems(shownPlans, marks.length, active);
  const current = items.findLast((item) => selected !== null && item.seq <= selected);
  const go = (by: number) => {
    const at = current ? items.indexOf(current) : items.length;
    const next = items[Math.min(items.length - 1, Math.max(0, at + by))];
    if (next) onPick(next.seq);
  };
  useHotkeys([
    { keys: "[", does: "Previous plan item", run: () => go(-1) },
    { keys: "]", does: "Next plan item", run: () => go(1) },
  ]);

  return (
    <>
      <section aria-label="Plan">
        <h2 className="label">Plan</h2>
        {items.length === 0 && (
          <p className="quiet plan-empty">
            {active ? "Its first plan appears here." : "It took its steps without a plan."}
          </p>
        )}
        {plans.length > shownPlans.length && (
          <p className="quiet plan-empty num">{plans.length - shownPlans.length} earlier in the timeline</p>
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
                  <span className="visually-hidden">{STATE_WORDS[item.state]}</span>
                </span>
                <span className="plan-title">{stepAt(log, item.seq)?.title ?? `Step ${item.seq}`}</span>
                <span className="num quiet" title={`${item.steps} steps`}>
                  {item.steps}
                </span>
              </button>
            </li>
          ))}
        </ol>
      </section>
      <section aria-label="Memory" className="memory">
        <h2 className="label">
          Memory <span className="num">{memories.length || ""}</span>
        </h2>
        {memories.length === 0 && (
          <p className="quiet plan-empty">{active ? "What it decides to keep appears here." : "It kept nothing."}</p>
        )}
        <ol>
          {heldSteps(log, shownMemories)
            .filter((step) => letterOf(marks[step.seq - 1]) === "m")
            .reverse()
            .map((step) => (
              <li key={step.seq}>
                <button type="button" onClick={() => onPick(step.seq)}>
                  <span>{step.title}</span>
                  {step.detail && <span className="quiet">{step.detail}</span>}
                </button>
              </li>
            ))}
        </ol>
      </section>
    </>
  );
}

const STATE_WORDS = { done: "done", now: "under way" } as const;
