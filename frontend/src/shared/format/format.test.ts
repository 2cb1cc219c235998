import { expect, test } from "vitest";
import { formatAgo, formatBytes, formatDuration, formatMs, formatUsd, secondsSince, shortHash } from "./numbers";
import { currentActionText, runStatusLabel, stopReasonInfo } from "./run-labels";

test("durations and counts are formatted for reading", () => {
  expect([3, 59, 70, 600, 3_599, 3_600, 7_500].map(formatDuration)).toEqual([
    "3 s",
    "59 s",
    "1 min 10 s",
    "10 min",
    "59 min",
    "1 h",
    "2 h 5 min",
  ]);
  expect([12, 340, 61_000].map(formatMs)).toEqual(["12 ms", "0.3 s", "1 min 1 s"]);
});

test("a clock that is ahead does not give negative times", () => {
  expect(secondsSince("2026-03-01T10:00:05Z", Date.parse("2026-03-01T10:00:00Z"))).toBe(0);
});

test("recent moments are relative, older ones are dates", () => {
  const now = Date.parse("2026-03-10T10:00:00Z");
  expect(formatAgo("2026-03-10T09:59:40Z", now)).toBe("just now");
  expect(formatAgo("2026-03-10T09:20:00Z", now)).toBe("40 min ago");
  expect(formatAgo("2026-03-09T08:00:00Z", now)).toBe("yesterday");
});

test("small amounts are not shown as zero", () => {
  expect(formatUsd(0.004)).toBe("under $0.01");
  expect(formatUsd(0)).toBe("$0.00");
  expect(formatBytes(48_122)).toBe("48 KB");
  expect(shortHash("9f3c1122aa21")).toBe("9f3c…21");
});

test("a run that ended without enough evidence is not called answered", () => {
  expect(runStatusLabel({ status: "done", stop_reason: "answered" }).label).toBe("Answered");
  expect(runStatusLabel({ status: "done", stop_reason: "turn_limit" }).label).toBe("Partial answer");
  expect(runStatusLabel({ status: "done", stop_reason: "nothing_found" }).label).toBe("Nothing found");
});

test("a run at an interrupt of its graph waits for a person", () => {
  expect(runStatusLabel({ status: "done", stop_reason: "answered", interrupted: true }).label).toBe("Waiting for you");
});

test("a stop reason has an explanation, and offers to dig deeper only if a larger budget helps", () => {
  expect(stopReasonInfo("turn_limit")?.canDigDeeper).toBe(true);
  expect(stopReasonInfo("nothing_found")?.canDigDeeper).toBe(false);
  expect(stopReasonInfo(null)).toBeNull();
});

test("the current action is shown in words, and an unknown action is unchanged", () => {
  expect(currentActionText("search_library: pooling")).toEqual({
    verb: "searching the library for",
    object: "pooling",
  });
  expect(currentActionText("something new: x")).toEqual({ verb: "something new: x", object: "" });
});
