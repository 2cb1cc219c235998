import { expect, test } from "vitest";
import { advanced, earliest, formatCursor, parseCursor, sameRuns } from "./cursor";

test("a cursor reads back as it was written", () => {
  const places = new Map([
    ["a", 0],
    ["b", 17],
  ]);
  expect(formatCursor(places)).toBe("a:0,b:17");
  expect(parseCursor("a:0,b:17")).toEqual(places);
});

test("what is no place is left out", () => {
  expect(parseCursor("")).toEqual(new Map());
  expect(parseCursor("a:,b:x,:3,c:-1,d:1.5,e:2")).toEqual(new Map([["e", 2]]));
});

test("a place only moves forward, and only for runs that are followed", () => {
  const places = new Map([["a", 5]]);
  expect(advanced(places, "a", 4)).toBe(places);
  expect(advanced(places, "b", 9)).toBe(places);
  expect(advanced(places, "a", 6).get("a")).toBe(6);
});

test("several tabs' wishes meet at the earliest place", () => {
  const merged = earliest([
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

test("the same runs at other places are the same runs", () => {
  expect(sameRuns(new Map([["a", 1]]), new Map([["a", 9]]))).toBe(true);
  expect(sameRuns(new Map([["a", 1]]), new Map([["b", 1]]))).toBe(false);
  expect(sameRuns(new Map([["a", 1]]), new Map())).toBe(false);
});
