import { expect, test } from "vitest";
import { findPoint, findRange, fitScale, linePath, stepAtX, valueY } from "@/shared/chart/line-geometry";
import { aJob, aMetric, anEvent, aVersion } from "@/testing/builders";
import { buildGroupBars, buildSeries, groupBarPaths, sumGroupBars } from "./curve-geometry";
import { rangeText } from "./curves";
import {
  eventText,
  formatMetric,
  jobStatusLabel,
  judgesText,
  ledgerReason,
  phaseText,
  stopReasonText,
  trainingStepText,
  versionStateLabel,
} from "./training-labels";

const POINTS = [
  { step: 1, value: 0.2 },
  { step: 2, value: null },
  { step: 3, value: 0.6 },
  { step: 4, value: 1 },
];

test("metrics are grouped by name, and a curve is interrupted where a value is missing", () => {
  const series = buildSeries([aMetric(1, "kl", 0.1), aMetric(1, "reward", 0.2), aMetric(2, "reward", null)]);
  expect(series.get("reward")).toEqual([
    { step: 1, value: 0.2 },
    { step: 2, value: null },
  ]);
  const path = linePath(POINTS, { width: 40, height: 26, steps: 4, low: 0, high: 1 });
  expect(path).toBe("M5.0 19.0M25.0 11.0L35.0 3.0");
});

test("a scale starts at zero only if zero is near", () => {
  expect(fitScale([POINTS], 10, 10, 4)).toMatchObject({ low: 0, high: 1 });
  expect(
    fitScale(
      [
        [
          { step: 1, value: 100 },
          { step: 2, value: 101 },
        ],
      ],
      10,
      10,
      2,
    ),
  ).toMatchObject({ low: 100, high: 101 });
});

test("a flat curve has no range, is drawn in the middle, and shows only its value", () => {
  for (const value of [0, 0.5, -3]) {
    const lines = [[1, 2, 3].map((step) => ({ step, value }))];
    const flat = fitScale(lines, 10, 10, 3);
    expect([flat.low, flat.high, valueY(value, flat)]).toEqual([value, value, 5]);
    expect(rangeText(findRange(lines))).toBe(`${formatMetric(value)} throughout`);
  }
});

test("the range shown is that of the values, not of the scale", () => {
  expect(rangeText(findRange([POINTS]))).toBe("0.2 to 1");
  expect(rangeText(findRange([[{ step: 1, value: null }]]))).toBe("no finite value");
});

test("a pixel maps to a step, and a step without a value to the last point before it", () => {
  expect([0, 9, 10, 39, 99].map((x) => stepAtX(x, 40, 4))).toEqual([1, 1, 2, 4, 4]);
  expect(findPoint(POINTS, 3)?.value).toBe(0.6);
  expect(findPoint(POINTS.slice(2), 2)).toBeNull();
  expect(findPoint(POINTS, null)?.step).toBe(4);
});

test("informative groups are drawn above the line, the others below it", () => {
  const names = { groups: 6, groups_informative: 4, groups_stale: 1, groups_incomplete: 1 };
  const bars = buildGroupBars(buildSeries(Object.entries(names).map(([name, value]) => aMetric(1, name, value))));
  expect(bars).toEqual([{ step: 1, informative: 4, uniform: 2, stale: 1, incomplete: 1 }]);
  expect(sumGroupBars([...bars, ...bars])).toEqual({ informative: 8, uniform: 4, stale: 2, incomplete: 2 });
  expect(groupBarPaths(bars, { width: 10, height: 46, steps: 1 })).toEqual({
    informative: "M5.0 23V3.0",
    uniform: "M5.0 23V33.0",
    unused: "M5.0 33.0V43.0",
  });
});

test("the status of a job shows the requested action and what stopped it", () => {
  expect(jobStatusLabel(aJob()).label).toBe("Training");
  expect(jobStatusLabel(aJob({ requested_action: "pause" })).label).toBe("Pausing");
  expect(jobStatusLabel(aJob({ state: "failed", stop_reason: "guard" })).label).toBe("Stopped by a guard");
  expect(phaseText(aJob())).toBe("forward");
  expect(phaseText(aJob({ phase: "step 2" }))).toBe("");
  expect(phaseText(aJob({ state: "done" }))).toBe("");
  expect(trainingStepText(aJob())).toBe("step 2 of 60");
  expect(trainingStepText(aJob({ planned_steps: null }))).toBe("step 2");
  expect(stopReasonText(aJob({ state: "done", stop_reason: "all steps are done" }))).toBe("All steps are done.");
  expect(stopReasonText(aJob({ state: "queued", waiting_for: "torch is not installed" }))).toBe(
    "torch is not installed",
  );
});

test("the usage of judges is shown with its limits, and not if there are none", () => {
  const judges = { calls: 120, cost_usd: "0.42", max_calls: 5000, max_cost_usd: "10" };
  expect(judgesText(aJob({ judges }))).toBe("judges: 120 of 5,000 calls, $0.42 of $10.00");
  expect(judgesText(aJob({ judges: { ...judges, max_calls: null, max_cost_usd: null } }))).toBe(
    "judges: 120 calls, $0.42",
  );
  expect(judgesText(aJob({ judges: { ...judges, calls: 0, cost_usd: "0" } }))).toBe(
    "judges: 0 of 5,000 calls, $0.00 of $10.00",
  );
  expect(judgesText(aJob())).toBe("");
});

test("a canary shows its fraction", () => {
  expect(versionStateLabel(aVersion({ state: "canary", canary_fraction: 0.25 })).label).toBe("Canary, 25% of new runs");
});

test("events have texts, and an unknown one keeps its name", () => {
  const render = (kind: string, detail: Record<string, unknown>) => {
    const { label, text } = eventText(anEvent(kind, detail));
    return `${label}: ${text}`;
  };
  expect(render("guard", { step: 23, reason: "drop of mean reward: 0.4", back_to_step: 22 })).toBe(
    "guard: step 23: drop of mean reward: 0.4; rolled back to step 22",
  );
  expect(render("guard", { step: 1, reason: "x", back_to_step: 0 })).toContain("rolled back to the start");
  expect(
    render("gate", { passed: true, active_version: "planner@1", comparison: { difference: 0.09 }, reasons: [] }),
  ).toBe("passed the gate: against planner@1, difference +0.090");
  expect(
    render("gate", {
      passed: false,
      active_version: "planner@1",
      comparison: { difference: 0 },
      reasons: ["only 3 pairs"],
    }),
  ).toBe("rejected by the gate: only 3 pairs");
  expect(render("canary", { policy: "planner@2", fraction: 0.1 })).toBe("canary: planner@2 on 10% of new runs");
  const look = { tasks: 30, active_version: "planner@1", difference: 0.031, low: -0.2, high: 0.262 };
  expect(render("canary_compared", { ...look, verdict: "undecided" })).toBe(
    "canary compared: 30 tasks of each, against planner@1: difference +0.031, interval −0.200 … +0.262",
  );
  expect(render("canary_compared", { ...look, verdict: "worse" })).toContain("canary is worse: ");
  expect(render("canary_compared", { ...look, verdict: "better" })).toContain("canary is better: ");
  expect(render("pause_requested", {})).toBe("pause requested: ");
  expect(ledgerReason("zero_advantage").label).toBe("zero advantage");
  expect(ledgerReason("of_tomorrow")).toEqual({ label: "of tomorrow", description: "" });
});

test("a metric is formatted in about four characters", () => {
  expect([0, 0.61234, -0.0312, 12.345, 1234.5, 0.0000312].map(formatMetric)).toEqual([
    "0",
    "0.612",
    "−0.0312",
    "12.3",
    "1,235",
    "3.1e-5",
  ]);
});
