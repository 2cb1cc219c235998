import { expect, test } from "vitest";
import { aStep } from "@/testing/builders";
import { EMPTY_LOG, reaching, withSteps } from "../stream/step-log";
import { continuedMarks, letterOf, markOf, seqsWith } from "./marks";

test("what failed is red whatever it was", () => {
  expect(markOf(aStep(1, { ok: false }))).toBe("f");
  expect(markOf(aStep(1, { kind: "memory", ok: false }))).toBe("f");
  expect(markOf(aStep(1, { kind: "failure", label: "search" }))).toBe("f");
});

test("a step's kind and label give its letter as the server does", () => {
  expect(markOf(aStep(1, { kind: "tool", label: "read" }))).toBe("r");
  expect(markOf(aStep(1, { kind: "tool", label: "calculate" }))).toBe("c");
  expect(markOf(aStep(1, { kind: "plan", label: "plan" }))).toBe("p");
  expect(markOf(aStep(1, { kind: "analysis", label: "analyse" }))).toBe("p");
  expect(markOf(aStep(1, { kind: "verdict", label: "verify" }))).toBe("v");
  expect(markOf(aStep(1, { kind: "report", label: "write" }))).toBe("w");
  expect(markOf(aStep(1, { kind: "resumed", label: "resumed" }))).toBe("h");
  expect(markOf(aStep(1, { kind: "command", label: "call" }))).toBe("n");
});

test("letters nobody knows are other", () => {
  expect(letterOf("?")).toBe("n");
  expect(letterOf(undefined)).toBe("n");
});

test("marks go on with the steps that came since, one letter a step", () => {
  const log = withSteps(reaching(EMPTY_LOG, 5), [aStep(3, { label: "read" }), aStep(5, { kind: "memory" })]);
  expect(continuedMarks("np", log)).toBe("nprnm");
  expect(continuedMarks("nprnmv", log)).toBe("nprnmv");
});

test("the steps of some kinds are found by their letters", () => {
  expect(seqsWith("npsrpm", ["p", "m"])).toEqual([2, 5, 6]);
});
