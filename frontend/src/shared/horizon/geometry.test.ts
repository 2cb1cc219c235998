import { expect, test } from "vitest";
import { expectedSteps, frameFor, paths, seqAt, xOf } from "./geometry";

const frame = { width: 1000, height: 80, steps: 100 };

test("the pixel under a step's mark finds that step again", () => {
  for (const seq of [1, 2, 50, 100]) expect(seqAt(xOf(seq, frame) + 1, frame, 100)).toBe(seq);
});

test("a pixel beyond what has happened is the last step", () => {
  expect(seqAt(999, frame, 30)).toBe(30);
  expect(seqAt(-5, frame, 30)).toBe(1);
});

test("ten thousand steps are a handful of paths with at most a few columns a pixel", () => {
  const marks = "psrmv".repeat(2_000);
  const drawn = paths(marks, { width: 1000, height: 80, steps: marks.length });
  expect(drawn.size).toBeLessThan(10);
  const pieces = [...drawn.values()].join("").split("M").length - 1;
  expect(pieces).toBeLessThan(1_000);
});

test("where a step has room, each has its own mark", () => {
  expect(paths("psr", frame).get("p")?.split("M")).toHaveLength(2);
  expect([...paths("psr", frame).keys()]).toEqual(["p", "s", "r"]);
});

test("a failure among many is not lost in a dense column", () => {
  const marks = `${"s".repeat(4_999)}f${"s".repeat(5_000)}`;
  expect(paths(marks, { width: 1000, height: 80, steps: marks.length }).has("f")).toBe(true);
});

test("the scale of an active run stays while it grows up to its limit", () => {
  expect(expectedSteps(5, 12, false)).toBe(expectedSteps(60, 12, false));
  expect(expectedSteps(500, 12, false)).toBeGreaterThanOrEqual(500);
  expect(expectedSteps(20, 12, true)).toBe(20);
});

test("a short run is a short line", () => {
  expect(frameFor(1200, 80, 10, 12).steps).toBe(100);
  expect(frameFor(1200, 80, 500, 12).steps).toBe(500);
});
