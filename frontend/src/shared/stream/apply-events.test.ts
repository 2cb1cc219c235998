import { QueryClient } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";
import { aRun, aStep, RUN_ID } from "@/testing/builders";
import { applyEvents, logKey, updateLog } from "./apply-events";
import { extendLog, listMissingPages, type StepLog } from "./step-log";

const step = (seq: number, kind: "tool_result" | "report" = "tool_result") => ({
  runId: RUN_ID,
  name: "step" as const,
  data: aStep(seq, { kind }),
});

test("a burst of steps with duplicates changes the log once", () => {
  const client = new QueryClient();
  const changes = vi.fn();
  client.getQueryCache().subscribe((event) => event.type === "updated" && changes());
  applyEvents(client, [step(1), step(2), step(2), step(3)]);
  expect(client.getQueryData<StepLog>(logKey(RUN_ID))?.last).toBe(3);
  expect(changes).toHaveBeenCalledTimes(1);
});

test("a run that is ahead of its steps has a gap between them", () => {
  const client = new QueryClient();
  applyEvents(client, [step(1), { runId: RUN_ID, name: "run", data: aRun({ last_seq: 300 }) }]);
  const log = client.getQueryData<StepLog>(logKey(RUN_ID));
  expect(log && listMissingPages(log, 1, 300)).toEqual([0, 1]);
});

test("the current action changes nothing else of the run", () => {
  const client = new QueryClient();
  const live = { current_action: "read_source: x", since: "2026-03-01T10:00:00Z", worker_heartbeat_at: null };
  client.setQueryData(["run", RUN_ID], aRun({ step_marks: "np" }));
  applyEvents(client, [{ runId: RUN_ID, name: "live", data: { run_id: RUN_ID, live } }]);
  expect(client.getQueryData(["run", RUN_ID])).toEqual(aRun({ step_marks: "np", live }));
});

test("a report step reloads the report", () => {
  const client = new QueryClient();
  client.setQueryData(["report", RUN_ID], null);
  applyEvents(client, [step(4, "report")]);
  expect(client.getQueryState(["report", RUN_ID])?.isInvalidated).toBe(true);
});

test("the log is unchanged when no new steps arrive", () => {
  const client = new QueryClient();
  updateLog(client, RUN_ID, (log) => extendLog(log, 8));
  applyEvents(client, []);
  expect(client.getQueryData<StepLog>(logKey(RUN_ID))?.last).toBe(8);
});
