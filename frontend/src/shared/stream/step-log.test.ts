import { expect, test } from "vitest";
import { aStep, steps } from "@/testing/builders";
import { EMPTY_LOG, heldSteps, missingPages, reaching, stepAt, withSteps } from "./step-log";

test("steps stand at their sequence numbers, whatever order they come in", () => {
  const log = withSteps(withSteps(EMPTY_LOG, steps(300, 310)), steps(1, 4));
  expect(log.last).toBe(310);
  expect(stepAt(log, 3)?.seq).toBe(3);
  expect(stepAt(log, 305)?.seq).toBe(305);
  expect(stepAt(log, 5)).toBeUndefined();
});

test("a repeated step changes nothing, not even the object", () => {
  const log = withSteps(EMPTY_LOG, steps(1, 10));
  expect(withSteps(log, [aStep(7, { title: "another text" })])).toBe(log);
  expect(stepAt(log, 7)?.title).toBe("Step number 7");
});

test("an earlier log is untouched by what comes later", () => {
  const before = withSteps(EMPTY_LOG, steps(1, 2));
  withSteps(before, steps(3, 4));
  expect(before.last).toBe(2);
  expect(stepAt(before, 3)).toBeUndefined();
});

test("a jump in the numbers leaves a hole that names its page", () => {
  const log = withSteps(withSteps(EMPTY_LOG, steps(1, 256)), [aStep(600)]);
  expect(missingPages(log, 1, 600)).toEqual([1, 2]);
  expect(missingPages(log, 1, 256)).toEqual([]);
  expect(missingPages(log, 600, 600)).toEqual([]);
});

test("one missing step in the middle of a page is a hole", () => {
  const log = withSteps(withSteps(EMPTY_LOG, steps(1, 9)), steps(11, 20));
  expect(missingPages(log, 1, 20)).toEqual([0]);
});

test("nothing is missing beyond what the run is known to have", () => {
  const log = withSteps(EMPTY_LOG, steps(1, 10));
  expect(missingPages(log, 1, 5_000)).toEqual([]);
  expect(missingPages(reaching(log, 300), 1, 5_000)).toEqual([0, 1]);
});

test("what is known of a run never shrinks", () => {
  const log = reaching(EMPTY_LOG, 40);
  expect(reaching(log, 12)).toBe(log);
});

test("a number below one is not a step", () => {
  expect(withSteps(EMPTY_LOG, [aStep(0), aStep(-3)])).toBe(EMPTY_LOG);
});

test("held steps keep the asked order and leave the others out", () => {
  const log = withSteps(EMPTY_LOG, steps(1, 3));
  expect(heldSteps(log, [3, 9, 1]).map((step) => step.seq)).toEqual([3, 1]);
});
