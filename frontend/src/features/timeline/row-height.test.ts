import { expect, test } from "vitest";
import { aStep } from "@/testing/builders";
import { rowHeight } from "./row-height";

const oneLine = { detail: "", ms: null, tokens: 0 };

test("a row is as high as its lines, and higher with the heading of a turn", () => {
  const step = aStep(2, { ...oneLine, turn: 3 });
  expect(rowHeight(step, 3, false, "comfortable")).toBe(36);
  expect(rowHeight(step, 2, false, "comfortable")).toBe(71);
  expect(rowHeight({ ...step, detail: "found" }, 3, false, "comfortable")).toBe(54);
});

test("time and tokens make two lines, which a phone shows as one", () => {
  const step = aStep(2, { ...oneLine, ms: 20, tokens: 5, turn: 3 });
  expect(rowHeight(step, 3, false, "comfortable")).toBe(54);
  expect(rowHeight(step, 3, true, "comfortable")).toBe(54);
  expect(rowHeight({ ...step, detail: "found" }, 3, true, "comfortable")).toBe(73);
});

test("a step that is not loaded keeps the room of two lines", () => {
  expect([rowHeight(undefined, 1, false, "comfortable"), rowHeight(undefined, undefined, true, "comfortable")]).toEqual(
    [54, 73],
  );
});

test("compact rows are lower, and the headings of turns are not", () => {
  const step = aStep(2, { ...oneLine, turn: 3 });
  expect(rowHeight(step, 3, false, "compact")).toBe(28);
  expect(rowHeight(step, 2, false, "compact")).toBe(28 + 35);
  expect(rowHeight(undefined, 1, true, "compact")).toBe(65);
});
