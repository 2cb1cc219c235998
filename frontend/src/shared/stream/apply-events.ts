/** What an event changes in the query cache. Knows the cache's keys, not where events come from. */

import type { QueryClient } from "@tanstack/react-query";
import type { Live, RunDetail, Step } from "../api/runs";
import type { StreamEvent } from "./connection";
import { EMPTY_LOG, reaching, type StepLog, withSteps } from "./step-log";

export function logKey(run: string) {
  return ["steps", run] as const;
}

export function changeLog(client: QueryClient, run: string, change: (log: StepLog) => StepLog): void {
  client.setQueryData<StepLog>(logKey(run), (log) => change(log ?? EMPTY_LOG));
}

function applySteps(client: QueryClient, run: string, steps: Step[]): void {
  changeLog(client, run, (log) => withSteps(log, steps));
  if (steps.some((step) => step.kind === "question" || step.kind === "answer"))
    client.invalidateQueries({ queryKey: ["questions", run] });
  if (steps.some((step) => step.kind === "report")) client.invalidateQueries({ queryKey: ["report", run] });
}

function applyRun(client: QueryClient, detail: RunDetail): void {
  client.setQueryData<RunDetail>(["run", detail.id], detail);
  changeLog(client, detail.id, (log) => reaching(log, detail.last_seq));
}

function applyOther(client: QueryClient, { run, name, data }: StreamEvent): void {
  if (name === "run") applyRun(client, data as RunDetail);
  if (name === "live") {
    const live = (data as { live: Live | null }).live;
    client.setQueryData<RunDetail>(["run", run], (detail) => detail && { ...detail, live });
  }
  if (name === "end") {
    for (const key of [["run", run], ["report", run], ["runs"], ["thread"]])
      client.invalidateQueries({ queryKey: key });
  }
}

/** Events in the order they came; a burst of steps is one change of the cache. */
export function applyEvents(client: QueryClient, events: readonly StreamEvent[]): void {
  const steps = new Map<string, Step[]>();
  for (const event of events) {
    if (event.name === "step") steps.set(event.run, [...(steps.get(event.run) ?? []), event.data as Step]);
  }
  for (const [run, rows] of steps) applySteps(client, run, rows);
  for (const event of events) if (event.name !== "step") applyOther(client, event);
}
