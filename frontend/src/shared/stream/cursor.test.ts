import { expect, test } from "vitest";
import { advanceCursor, hasSameRuns, mergeEarliest, parseCursor, renderCursor } from "./cursor";

test("a rendered cursor is parsed to the same cursor", () => {
  const cursor = new Map([
    ["a", 0],
    ["b", 17],
  ]);
  expect(renderCursor(cursor)).toBe("a:0,b:17");
  expect(parseCursor("a:0,b:17")).toEqual(cursor);
});

test("invalid entries of a cursor are skipped", () => {
  expect(parseCursor("")).toEqual(new Map());
  expect(parseCursor("a:,b:x,:3,c:-1,d:1.5,e:2")).toEqual(new Map([["e", 2]]));
});

test("a cursor only moves forward, and only for runs that are followed", () => {
  const cursor = new Map([["a", 5]]);
  expect(advanceCursor(cursor, "a", 4)).toBe(cursor);
  expect(advanceCursor(cursor, "b", 9)).toBe(cursor);
  expect(advanceCursor(cursor, "a", 6).get("a")).toBe(6);
});

test("merged cursors keep the lowest sequence number of each run", () => {
  const merged = mergeEarliest([
    new Map([["a", 5]]),
    new Map([
      ["a", 2],
      ["b", 1],
    ]),
  ]);
  expect(merged).toEqual(
    new Map([
      ["a", 2],
      ["b", 1],
    ]),
  );
});

test("cursors with the same runs at different steps have the same runs", () => {
  expect(hasSameRuns(new Map([["a", 1]]), new Map([["a", 9]]))).toBe(true);
  expect(hasSameRuns(new Map([["a", 1]]), new Map([["b", 1]]))).toBe(false);
  expect(hasSameRuns(new Map([["a", 1]]), new Map())).toBe(false);
});
