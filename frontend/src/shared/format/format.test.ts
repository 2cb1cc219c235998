import { expect, test } from "vitest";
import { ago, bytes, counted, money, shortHash, since, span, took } from "./numbers";
import { doingWords, ending, statusWording } from "./run-words";

test("times are said as a person would", () => {
  expect([3, 59, 70, 600, 3_599, 3_600, 7_500].map(span)).toEqual([
    "3 s",
    "59 s",
    "1 min 10 s",
    "10 min",
    "59 min",
    "1 h",
    "2 h 5 min",
  ]);
  expect([12, 340, 61_000].map(took)).toEqual(["12 ms", "0.3 s", "1 min 1 s"]);
});

test("a clock ahead of ours does not give negative times", () => {
  expect(since("2026-03-01T10:00:05Z", Date.parse("2026-03-01T10:00:00Z"))).toBe(0);
});

test("moments are near or dated", () => {
  const now = Date.parse("2026-03-10T10:00:00Z");
  expect(ago("2026-03-10T09:59:40Z", now)).toBe("just now");
  expect(ago("2026-03-10T09:20:00Z", now)).toBe("40 min ago");
  expect(ago("2026-03-09T08:00:00Z", now)).toBe("yesterday");
});

test("small amounts are not shown as nothing", () => {
  expect(money(0.004)).toBe("under $0.01");
  expect(money(0)).toBe("$0.00");
  expect(bytes(48_122)).toBe("48 KB");
  expect(counted(1, "step")).toBe("1 step");
  expect(counted(1_200, "step")).toBe("1,200 steps");
  expect(shortHash("9f3c1122aa21")).toBe("9f3c…21");
});

test("a run that ended without enough evidence is not called answered", () => {
  expect(statusWording({ status: "done", stop_reason: "answered" }).word).toBe("Answered");
  expect(statusWording({ status: "done", stop_reason: "turn_limit" }).word).toBe("Partial answer");
  expect(statusWording({ status: "done", stop_reason: "nothing_found" }).word).toBe("Nothing found");
});

test("an ending says why, and offers more only where more helps", () => {
  expect(ending("turn_limit")?.deeper).toBe(true);
  expect(ending("nothing_found")?.deeper).toBe(false);
  expect(ending(null)).toBeNull();
});

test("what a run does is said like a colleague, and unknown words are left as they are", () => {
  expect(doingWords("search_library: pooling")).toEqual({ verb: "searching the library for", object: "pooling" });
  expect(doingWords("something new: x")).toEqual({ verb: "something new: x", object: "" });
});
