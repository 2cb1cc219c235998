import { expect, test } from "vitest";
import { aRun } from "@/testing/builders";
import { mergeRuns, passesFilter } from "./use-run-list";

const at = (day: number) => `2026-03-0${day}T10:00:00Z`;

test("new runs are added before the loaded ones, and the state of loaded runs is the latest", () => {
  const loaded = [aRun({ id: "b", created_at: at(2) }), aRun({ id: "a", created_at: at(1) })];
  const latest = [aRun({ id: "c", created_at: at(3) }), aRun({ id: "b", created_at: at(2), status: "done" })];
  expect(mergeRuns(loaded, latest).map((run) => [run.id, run.status])).toEqual([
    ["c", "running"],
    ["b", "done"],
    ["a", "running"],
  ]);
});

test("a run that was deleted from the loaded pages does not come back as an older one", () => {
  const loaded = [aRun({ id: "c", created_at: at(3) }), aRun({ id: "a", created_at: at(1) })];
  const latest = [aRun({ id: "c", created_at: at(3) }), aRun({ id: "b", created_at: at(2) })];
  expect(mergeRuns(loaded, latest).map((run) => run.id)).toEqual(["c", "a"]);
});

test("a changed run leaves the lists whose filter it does not pass any more", () => {
  const archived = aRun({ archived_at: at(1) });
  expect(passesFilter(archived, {})).toBe(false);
  expect(passesFilter(archived, { archived: true })).toBe(true);
  expect(passesFilter(aRun(), { pinned: true })).toBe(false);
  expect(passesFilter(aRun({ tags: ["sea"] }), { tag: "sea" })).toBe(true);
  expect(passesFilter(aRun(), { tag: "sea" })).toBe(false);
});
