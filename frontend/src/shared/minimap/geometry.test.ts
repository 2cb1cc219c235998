import { expect, test } from "vitest";
import { createFrame, expectedSteps, markPaths, seqAt, stepX } from "./geometry";

const frame = { width: 1000, height: 80, steps: 100 };

test("the pixel under a step's mark finds that step again", () => {
  for (const seq of [1, 2, 50, 100]) expect(seqAt(stepX(seq, frame) + 1, frame, 100)).toBe(seq);
});

test("a pixel after the last step selects the last step", () => {
  expect(seqAt(999, frame, 30)).toBe(30);
  expect(seqAt(-5, frame, 30)).toBe(1);
});

test("ten thousand steps are a few paths with at most a few columns per pixel", () => {
  const marks = "psrmv".repeat(2_000);
  const drawn = markPaths(marks, { width: 1000, height: 80, steps: marks.length });
  expect(drawn.size).toBeLessThan(10);
  const barCount = [...drawn.values()].join("").split("M").length - 1;
  expect(barCount).toBeLessThan(1_000);
});

test("if there is room, each step has its own mark", () => {
  expect(markPaths("psr", frame).get("p")?.split("M")).toHaveLength(2);
  expect([...markPaths("psr", frame).keys()]).toEqual(["p", "s", "r"]);
});

test("a failure remains visible in a dense column", () => {
  const marks = `${"s".repeat(4_999)}f${"s".repeat(5_000)}`;
  expect(markPaths(marks, { width: 1000, height: 80, steps: marks.length }).has("f")).toBe(true);
});

test("the scale of an active run is stable while it grows up to its turn limit", () => {
  expect(expectedSteps(5, 12, false)).toBe(expectedSteps(60, 12, false));
  expect(expectedSteps(500, 12, false)).toBeGreaterThanOrEqual(500);
  expect(expectedSteps(20, 12, true)).toBe(20);
});

test("a short run has a short line", () => {
  expect(createFrame(1200, 80, 10, 12).steps).toBe(100);
  expect(createFrame(1200, 80, 500, 12).steps).toBe(500);
});
