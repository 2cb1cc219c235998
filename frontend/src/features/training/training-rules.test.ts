import { expect, test } from "vitest";
import { aJob, aMetric, anEvent, aVersion } from "@/testing/builders";
import {
  barPaths,
  groupBars,
  groupTotals,
  pathOf,
  pointAt,
  rangeOf,
  scaleOf,
  seriesOf,
  stepAt,
  yOf,
} from "./curve-geometry";
import { rangeWords } from "./curves";
import {
  doingWords,
  eventWords,
  figure,
  jobWording,
  reasonWords,
  stepWords,
  versionWording,
  whyWords,
} from "./training-words";

const POINTS = [
  { step: 1, value: 0.2 },
  { step: 2, value: null },
  { step: 3, value: 0.6 },
  { step: 4, value: 1 },
];

test("figures are drawn by name, and a curve breaks where one is missing", () => {
  const series = seriesOf([aMetric(1, "kl", 0.1), aMetric(1, "reward", 0.2), aMetric(2, "reward", null)]);
  expect(series.get("reward")).toEqual([
    { step: 1, value: 0.2 },
    { step: 2, value: null },
  ]);
  const path = pathOf(POINTS, { width: 40, height: 26, steps: 4, low: 0, high: 1 });
  expect(path).toBe("M5.0 19.0M25.0 11.0L35.0 3.0");
});

test("a scale begins at zero where zero is near, and not where it is far", () => {
  expect(scaleOf([POINTS], 10, 10, 4)).toMatchObject({ low: 0, high: 1 });
  expect(
    scaleOf(
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

test("a flat curve has no range, lies in the middle, and says its value alone", () => {
  for (const value of [0, 0.5, -3]) {
    const lines = [[1, 2, 3].map((step) => ({ step, value }))];
    const flat = scaleOf(lines, 10, 10, 3);
    expect([flat.low, flat.high, yOf(value, flat)]).toEqual([value, value, 5]);
    expect(rangeWords(rangeOf(lines))).toBe(`${figure(value)} throughout`);
  }
});

test("the range in words is that of what was measured, not of the drawing", () => {
  expect(rangeWords(rangeOf([POINTS]))).toBe("0.2 to 1");
  expect(rangeWords(rangeOf([[{ step: 1, value: null }]]))).toBe("no finite value");
});

test("a pixel stands for a step, and a step without a figure for the last before it", () => {
  expect([0, 9, 10, 39, 99].map((x) => stepAt(x, 40, 4))).toEqual([1, 1, 2, 4, 4]);
  expect(pointAt(POINTS, 3)?.value).toBe(0.6);
  expect(pointAt(POINTS.slice(2), 2)).toBeNull();
  expect(pointAt(POINTS, null)?.step).toBe(4);
});

test("groups that teach stand above the line, those that do not below it", () => {
  const names = { groups: 6, groups_informative: 4, groups_stale: 1, groups_short: 1 };
  const bars = groupBars(seriesOf(Object.entries(names).map(([name, value]) => aMetric(1, name, value))));
  expect(bars).toEqual([{ step: 1, differing: 4, alike: 2, stale: 1, short: 1 }]);
  expect(groupTotals([...bars, ...bars])).toEqual({ differing: 8, alike: 4, stale: 2, short: 2 });
  expect(barPaths(bars, { width: 10, height: 46, steps: 1 })).toEqual({
    differing: "M5.0 23V3.0",
    alike: "M5.0 23V33.0",
    lost: "M5.0 33.0V43.0",
  });
});

test("a job's state says what was wished of it and what stopped it", () => {
  expect(jobWording(aJob()).word).toBe("Training");
  expect(jobWording(aJob({ wish: "pause" })).word).toBe("Pausing");
  expect(jobWording(aJob({ state: "failed", stop_reason: "guard" })).word).toBe("Stopped by a guard");
  expect(doingWords(aJob())).toBe("forward");
  expect(doingWords(aJob({ phase: "step 2" }))).toBe("");
  expect(doingWords(aJob({ state: "done" }))).toBe("");
  expect(stepWords(aJob())).toBe("step 2 of 60");
  expect(stepWords(aJob({ config: {} }))).toBe("step 2");
  expect(whyWords(aJob({ state: "done", stop_reason: "all steps are done" }))).toBe("All steps are done.");
  expect(whyWords(aJob({ state: "queued", waits_for: "torch is not installed" }))).toBe("torch is not installed");
});

test("a canary says its share", () => {
  expect(versionWording(aVersion({ state: "canary", canary_share: 0.25 })).word).toBe("Canary, 25 % of new runs");
});

test("decisions are sentences, and one that nobody foresaw keeps its name", () => {
  const said = (kind: string, detail: Record<string, unknown>) => {
    const { word, text } = eventWords(anEvent(kind, detail));
    return `${word}: ${text}`;
  };
  expect(said("guard", { step: 23, why: "mean reward fell: 0.4", back_to_step: 22 })).toBe(
    "guard: step 23: mean reward fell: 0.4; back to step 22",
  );
  expect(said("guard", { step: 1, why: "x", back_to_step: 0 })).toContain("back to where it began");
  expect(said("gate", { passed: true, champion: "planner@1", difference: 0.09, why_not: [] })).toBe(
    "passed the gate: against planner@1, difference +0.090",
  );
  expect(said("gate", { passed: false, why_not: ["only 3 pairs"] })).toBe("held at the gate: only 3 pairs");
  expect(said("canary", { policy: "planner@2", share: 0.1 })).toBe("canary: planner@2 on 10 % of new runs");
  expect(said("pause asked", {})).toBe("pause asked: ");
  expect(reasonWords("zero_advantage").word).toBe("nothing to learn");
  expect(reasonWords("of_tomorrow")).toEqual({ word: "of tomorrow", why: "" });
});

test("a figure takes about four characters", () => {
  expect([0, 0.61234, -0.0312, 12.345, 1234.5, 0.0000312].map(figure)).toEqual([
    "0",
    "0.612",
    "−0.0312",
    "12.3",
    "1,235",
    "3.1e-5",
  ]);
});
