/** Applies events to the query cache. */

import type { QueryClient } from "@tanstack/react-query";
import { type AnswerDraft, addDraftPart, draftsQuery } from "../api/drafts";
import type { Live, RunDetail, Step } from "../api/runs";
import type { StreamEvent } from "./connection";
import { addSteps, EMPTY_LOG, extendLog, type StepLog } from "./step-log";

export function logKey(runId: string) {
  return ["steps", runId] as const;
}

export function updateLog(client: QueryClient, runId: string, change: (log: StepLog) => StepLog): void {
  client.setQueryData<StepLog>(logKey(runId), (log) => change(log ?? EMPTY_LOG));
}

function applySteps(client: QueryClient, runId: string, steps: Step[]): void {
  updateLog(client, runId, (log) => addSteps(log, steps));
  if (steps.some((step) => step.kind === "input_request" || step.kind === "input_response"))
    client.invalidateQueries({ queryKey: ["input-requests", runId] });
  if (steps.some((step) => step.kind === "report")) client.invalidateQueries({ queryKey: ["report", runId] });
}

function applyRun(client: QueryClient, detail: RunDetail): void {
  client.setQueryData<RunDetail>(["run", detail.id], detail);
  updateLog(client, detail.id, (log) => extendLog(log, detail.last_seq));
}

function applyDraftPart(client: QueryClient, runId: string, part: AnswerDraft): void {
  const { queryKey } = draftsQuery(runId);
  const drafts = addDraftPart(client.getQueryData(queryKey) ?? [], part);
  // This tab has missed text, for example because it opened while another tab read the stream.
  if (drafts === null) client.invalidateQueries({ queryKey });
  else client.setQueryData(queryKey, drafts);
}

function applyDraftEnd(client: QueryClient, runId: string, callId: string): void {
  const { queryKey } = draftsQuery(runId);
  client.setQueryData(queryKey, (drafts) => drafts?.filter((draft) => draft.call_id !== callId));
  // A response that was sent before the end would show the draft again.
  if (client.isFetching({ queryKey }) > 0) client.invalidateQueries({ queryKey });
}

function applyOther(client: QueryClient, { runId: run, name, data }: StreamEvent): void {
  if (name === "run") applyRun(client, data as RunDetail);
  if (name === "live") {
    const live = (data as { live: Live | null }).live;
    client.setQueryData<RunDetail>(["run", run], (detail) => detail && { ...detail, live });
  }
  if (name === "draft") applyDraftPart(client, run, data as AnswerDraft);
  if (name === "draft_end") applyDraftEnd(client, run, (data as { call_id: string }).call_id);
  if (name === "end") {
    for (const key of [["run", run], ["report", run], ["runs"], ["thread"]])
      client.invalidateQueries({ queryKey: key });
  }
}

/** Apply events in the order in which they arrived. A burst of steps changes the cache once. */
export function applyEvents(client: QueryClient, events: readonly StreamEvent[]): void {
  const steps = new Map<string, Step[]>();
  for (const event of events) {
    if (event.name !== "step") continue;
    const rows = steps.get(event.runId);
    if (rows) rows.push(event.data as Step);
    else steps.set(event.runId, [event.data as Step]);
  }
  for (const [run, rows] of steps) applySteps(client, run, rows);
  for (const event of events) if (event.name !== "step") applyOther(client, event);
}
