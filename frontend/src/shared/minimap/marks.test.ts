import { expect, test } from "vitest";
import { aStep } from "@/testing/builders";
import { addSteps, EMPTY_LOG, extendLog } from "../stream/step-log";
import { extendMarks, findSeqs, markForStep, parseMark } from "./marks";

test("a failed step of any kind has the mark of a failure", () => {
  expect(markForStep(aStep(1, { ok: false }))).toBe("f");
  expect(markForStep(aStep(1, { kind: "memory", ok: false }))).toBe("f");
  expect(markForStep(aStep(1, { kind: "failure", label: "search" }))).toBe("f");
});

test("the kind and label of a step give the same mark as on the server", () => {
  expect(markForStep(aStep(1, { kind: "tool_result", label: "read" }))).toBe("r");
  expect(markForStep(aStep(1, { kind: "tool_result", label: "calculate" }))).toBe("c");
  expect(markForStep(aStep(1, { kind: "plan", label: "plan" }))).toBe("p");
  expect(markForStep(aStep(1, { kind: "analysis", label: "analyze" }))).toBe("p");
  expect(markForStep(aStep(1, { kind: "verification", label: "verify" }))).toBe("v");
  expect(markForStep(aStep(1, { kind: "report", label: "write" }))).toBe("w");
  expect(markForStep(aStep(1, { kind: "resumed", label: "resumed" }))).toBe("h");
  expect(markForStep(aStep(1, { kind: "tool_call", label: "call" }))).toBe("n");
});

test("an unknown letter has the mark for other steps", () => {
  expect(parseMark("?")).toBe("n");
  expect(parseMark(undefined)).toBe("n");
});

test("marks are extended by newer steps, one letter per step", () => {
  const log = addSteps(extendLog(EMPTY_LOG, 5), [aStep(3, { label: "read" }), aStep(5, { kind: "memory" })]);
  expect(extendMarks("np", log)).toBe("nprnm");
  expect(extendMarks("nprnmv", log)).toBe("nprnmv");
});

test("steps are found by their marks", () => {
  expect(findSeqs("npsrpm", ["p", "m"])).toEqual([2, 5, 6]);
});
