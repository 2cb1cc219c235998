import { expect, test } from "vitest";
import { aStep, steps } from "@/testing/builders";
import { addSteps, EMPTY_LOG, extendLog, listLoadedSteps, listMissingPages, stepAt } from "./step-log";

test("steps are stored by sequence number, independent of the order in which they arrive", () => {
  const log = addSteps(addSteps(EMPTY_LOG, steps(300, 310)), steps(1, 4));
  expect(log.last).toBe(310);
  expect(stepAt(log, 3)?.seq).toBe(3);
  expect(stepAt(log, 305)?.seq).toBe(305);
  expect(stepAt(log, 5)).toBeUndefined();
});

test("a repeated step changes nothing, not even the object", () => {
  const log = addSteps(EMPTY_LOG, steps(1, 10));
  expect(addSteps(log, [aStep(7, { title: "another text" })])).toBe(log);
  expect(stepAt(log, 7)?.title).toBe("Step number 7");
});

test("an earlier log is not changed by later steps", () => {
  const before = addSteps(EMPTY_LOG, steps(1, 2));
  addSteps(before, steps(3, 4));
  expect(before.last).toBe(2);
  expect(stepAt(before, 3)).toBeUndefined();
});

test("a jump in the sequence numbers leaves a gap on its page", () => {
  const log = addSteps(addSteps(EMPTY_LOG, steps(1, 256)), [aStep(600)]);
  expect(listMissingPages(log, 1, 600)).toEqual([1, 2]);
  expect(listMissingPages(log, 1, 256)).toEqual([]);
  expect(listMissingPages(log, 600, 600)).toEqual([]);
});

test("one missing step in the middle of a page is a gap", () => {
  const log = addSteps(addSteps(EMPTY_LOG, steps(1, 9)), steps(11, 20));
  expect(listMissingPages(log, 1, 20)).toEqual([0]);
});

test("nothing is missing after the last known step", () => {
  const log = addSteps(EMPTY_LOG, steps(1, 10));
  expect(listMissingPages(log, 1, 5_000)).toEqual([]);
  expect(listMissingPages(extendLog(log, 300), 1, 5_000)).toEqual([0, 1]);
});

test("a log never shrinks", () => {
  const log = extendLog(EMPTY_LOG, 40);
  expect(extendLog(log, 12)).toBe(log);
});

test("a number below one is not a step", () => {
  expect(addSteps(EMPTY_LOG, [aStep(0), aStep(-3)])).toBe(EMPTY_LOG);
});

test("loaded steps are returned in the requested order, without missing ones", () => {
  const log = addSteps(EMPTY_LOG, steps(1, 3));
  expect(listLoadedSteps(log, [3, 9, 1]).map((step) => step.seq)).toEqual([3, 1]);
});
