import { QueryClient } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";
import { aRun, aStep, RUN_ID } from "@/testing/builders";
import { applyEvents, changeLog, logKey } from "./apply-events";
import { missingPages, reaching, type StepLog } from "./step-log";

const step = (seq: number, kind: "tool" | "report" = "tool") => ({
  run: RUN_ID,
  name: "step" as const,
  data: aStep(seq, { kind }),
});

test("a burst of steps, some of them twice, is one change of the log", () => {
  const client = new QueryClient();
  const changes = vi.fn();
  client.getQueryCache().subscribe((event) => event.type === "updated" && changes());
  applyEvents(client, [step(1), step(2), step(2), step(3)]);
  expect(client.getQueryData<StepLog>(logKey(RUN_ID))?.last).toBe(3);
  expect(changes).toHaveBeenCalledTimes(1);
});

test("a run's state that is ahead of the steps shows the hole between them", () => {
  const client = new QueryClient();
  applyEvents(client, [step(1), { run: RUN_ID, name: "run", data: aRun({ last_seq: 300 }) }]);
  const log = client.getQueryData<StepLog>(logKey(RUN_ID));
  expect(log && missingPages(log, 1, 300)).toEqual([0, 1]);
});

test("what a run does now changes the run and nothing else of it", () => {
  const client = new QueryClient();
  const live = { doing: "read_source: x", since: "2026-03-01T10:00:00Z", worker_seen: null };
  client.setQueryData(["run", RUN_ID], aRun({ marks: "np" }));
  applyEvents(client, [{ run: RUN_ID, name: "live", data: { run_id: RUN_ID, live } }]);
  expect(client.getQueryData(["run", RUN_ID])).toEqual(aRun({ marks: "np", live }));
});

test("a report step makes the report be read again", () => {
  const client = new QueryClient();
  client.setQueryData(["report", RUN_ID], null);
  applyEvents(client, [step(4, "report")]);
  expect(client.getQueryState(["report", RUN_ID])?.isInvalidated).toBe(true);
});

test("the log keeps what it knew when nothing new comes", () => {
  const client = new QueryClient();
  changeLog(client, RUN_ID, (log) => reaching(log, 8));
  applyEvents(client, []);
  expect(client.getQueryData<StepLog>(logKey(RUN_ID))?.last).toBe(8);
});
