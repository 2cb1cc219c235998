import { expect, test } from "vitest";
import { cutText, windowOf } from "./document-text";

const mark = (start: number, end: number) => ({ text_id: "t", start, end, label: "1" });

test("a text is cut where its marks begin and end, in code points", () => {
  const parts = cutText("a😀bcd", 10, [mark(11, 13)]);
  expect(parts.map(({ text, mark: number }) => [text, number])).toEqual([
    ["a", null],
    ["😀b", 0],
    ["cd", null],
  ]);
  expect(parts[1]?.isStart).toBe(true);
});

test("a mark that began in an earlier part of the text goes on, without a start", () => {
  expect(cutText("abc", 10, [mark(5, 11)])).toEqual([
    { text: "a", mark: 0, isStart: false },
    { text: "bc", mark: null, isStart: false },
  ]);
});

test("of marks that overlap, the first counts", () => {
  expect(cutText("abcd", 0, [mark(0, 2), mark(1, 3)]).map(({ text, mark: number }) => [text, number])).toEqual([
    ["a", 0],
    ["b", 0],
    ["c", 1],
    ["d", null],
  ]);
});

test("positions belong to windows of the same size", () => {
  expect([windowOf(0), windowOf(19_999), windowOf(20_000)]).toEqual([0, 0, 1]);
});
