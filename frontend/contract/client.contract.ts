/**
 * Calls every API route that the web UI uses, through the web UI's own client code, against a running API.
 * `tests/api/test_web_ui_contract.py` compares the recorded exchanges with the OpenAPI document and names each call that
 * is missing here.
 */

import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { buildRunRequest } from "@/features/home/request";
import { buildDecision, createDrafts } from "@/features/input-requests/decisions";
import { buildFollowUp } from "@/features/run/follow-up";
import { draftsQuery } from "@/shared/api/drafts";
import { fileUrl, runFilesQuery } from "@/shared/api/files";
import { inputRequestsQuery, respondToInputRequest } from "@/shared/api/input-requests";
import { enginesQuery, graphsQuery, mcpServersQuery, tenantQuery, updateTenant } from "@/shared/api/installation";
import * as library from "@/shared/api/library";
import { createRating, ratingsQuery, reportQuery } from "@/shared/api/reports";
import { runTreeQuery } from "@/shared/api/run-trees";
import * as runs from "@/shared/api/runs";
import { sessionQuery, signOut } from "@/shared/api/session";
import { reportVersionsQuery, stepsWithPayloadQuery } from "@/shared/api/step-payloads";
import { threadQuery } from "@/shared/api/threads";
import * as training from "@/shared/api/training";
import { trajectoryQuery } from "@/shared/api/trajectories";

interface Known {
  ended: string;
  active: string;
  asked: string;
  number: number;
  rollout: string;
  source: string;
  text_id: string;
  versions: string[];
  library: string;
  job: string;
}

const known = JSON.parse(process.env.OFFING_CONTRACT ?? "{}") as Known;
const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });

const picked = (name: string, text: string) => ({ name, file: new File([text], name) });

test("the session, and the graphs, engines and servers of the installation", async () => {
  expect((await client.fetchQuery(sessionQuery)).csrf_token).toBeTruthy();
  const graphs = await client.fetchQuery(graphsQuery);
  expect(graphs.length).toBeGreaterThan(0);
  await client.fetchQuery(enginesQuery);
  await client.fetchQuery(mcpServersQuery);
  const tenant = await client.fetchQuery(tenantQuery);
  await updateTenant({ training_opt_in: tenant.training_opt_in });
  await updateTenant({ max_daily_spend_usd: 5 });
  expect((await fetch("/api/v1/health/ready")).ok).toBe(true);
});

test("a folder and single files are added, found and erased", async () => {
  const text = "# Salt\n\nRivers carry dissolved salt into the sea.\n";
  const folder = await library.uploadFiles([picked("a.md", text), picked("deep/a.md", `${text}Twice.`)], "papers");
  expect(folder.files.map((file) => [file.outcome, file.source?.collection])).toEqual([
    ["added", "papers"],
    ["added", "papers"],
  ]);
  const single = await library.uploadFiles([picked("b.md", `${text}Once.`)], "");
  expect(single.files[0]?.outcome).toBe("added");
  expect((await client.fetchQuery(library.collectionsQuery)).map(({ name }) => name)).toContain("papers");
  expect((await client.fetchQuery(library.libraryStatusQuery)).embedding).toBeNull();
  for (const collection of [null, "papers", ""]) {
    await client.fetchInfiniteQuery(library.sourcesQuery(collection, ""));
    await client.fetchInfiniteQuery(library.sourcesQuery(collection, "salt"));
    await client.fetchQuery(library.passagesQuery(collection, "river salt"));
  }
  await client.fetchQuery(library.passageQuery({ text_id: known.text_id, start: 0, end: 10 }));
  await library.moveSources([single.files[0]?.source?.id ?? ""], "drafts");
  expect((await library.renameCollection("drafts", "notes")).name).toBe("notes");
  expect((await client.fetchQuery(library.sourceQuery(single.files[0]?.source?.id ?? ""))).collection).toBe("notes");
  expect((await library.deleteCollection("notes", "keep")).kept_count).toBe(1);
  const erased = await library.eraseSource(single.files[0]?.source?.id ?? "");
  expect(erased.sources).toBe(1);
});

test("a run is created, messaged, paused, resumed and ended", async () => {
  const graphs = await client.fetchQuery(graphsQuery);
  const draft = {
    question: "Why is the sea salt?",
    turns: 4,
    usd: "1",
    minutes: "3",
    graph: graphs[0]?.name ?? "",
    engine: "extractive",
    collections: ["papers"],
    sources: [],
    attachedTo: [],
    singles: [],
    web: true,
    mcp: [],
    code: true,
  };
  const run = await runs.createRun(buildRunRequest(draft, graphs), "contract-1");
  await client.fetchInfiniteQuery(runs.runsQuery(""));
  await client.fetchInfiniteQuery(runs.runsQuery("salt"));
  await runs.sendUserMessage(run.id, "Look at the rivers.");
  await runs.pauseRun(run.id);
  await runs.resumeRun(run.id);
  await runs.cancelRun(run.id, "finish");
  await runs.cancelRun(known.active, "discard");
});

test("an ended run is read, exported, rated and followed up", async () => {
  const run = await client.fetchQuery(runs.runQuery(known.ended));
  const { items } = await runs.fetchSteps(run.id, 0);
  expect(items.length).toBeGreaterThan(2);
  await client.fetchQuery(runs.stepQuery(run.id, 1));
  await client.fetchQuery(draftsQuery(run.id));
  await client.fetchQuery(runTreeQuery(run));
  await client.fetchQuery(threadQuery(run.thread_id));
  await client.fetchQuery(stepsWithPayloadQuery(run.id, ["memory", "role_call"], run.last_seq, false));
  await client.fetchQuery(reportVersionsQuery(run.id, false));
  await client.fetchInfiniteQuery(trajectoryQuery(known.rollout, false));
  const report = await client.fetchQuery(reportQuery(run.id, true));
  expect(report?.citations).toHaveLength(1);
  for (const format of ["md", "html", "json"] as const) {
    expect((await fetch(runs.exportUrl(run.id, format))).ok).toBe(true);
  }
  const files = await client.fetchQuery(runFilesQuery(run.id));
  expect((await fetch(fileUrl(run.id, files.items[0]?.sha256 ?? ""))).ok).toBe(true);
  await createRating(run.id, { sentence_id: "s1", value: 1, correction: "" });
  await createRating(run.id, { sentence_id: null, value: -1, correction: "Name the river." });
  await client.fetchQuery(ratingsQuery(run.id));
  const next = await runs.createRun(buildFollowUp(run, "And the lakes?", 4, "research"), "contract-2");
  expect(next.thread_id).toBe(run.thread_id);
  await runs.cancelRun(next.id, "discard");
  const fork = await runs.forkRun(run.id, 1, "contract-3");
  expect(fork).toMatchObject({ forked_from_id: run.id, forked_at_seq: 1 });
  await runs.cancelRun(fork.id, "discard");
});

test("runs are filtered, organized, found and deleted", async () => {
  const filters: runs.RunListFilter[] = [
    {},
    { state: "waiting" },
    { state: "active" },
    { state: "failed", from: "2026-01-01", until: "2099-12-31" },
    { state: "ended", q: "salt", graph: "quiet", archived: true },
    { tag: "sea", pinned: true },
    { cites: known.source },
  ];
  for (const filter of filters) {
    await client.fetchInfiniteQuery(runs.runListQuery(filter));
    await client.fetchQuery(runs.latestRunsQuery(filter, 30));
  }
  await client.fetchQuery(runs.foundRunsQuery("salt", 6));
  const change = { title: "Salt", tags: ["sea"], pinned: true, archived: false };
  expect((await runs.changeRun(known.ended, change)).tags).toEqual(["sea"]);
  expect((await client.fetchQuery(runs.tagsQuery)).items).toEqual(["sea"]);
  expect((await runs.deleteRun(known.active, true)).run_ids).toEqual([known.active]);
});

test("input requests are read and responded to, and events are followed", async () => {
  const questions = await client.fetchQuery(inputRequestsQuery(known.asked));
  expect(questions.items).toHaveLength(2);
  await respondToInputRequest(known.asked, known.number, { decision: "edited", steps: ["look again"], comment: "" });
  const formed = questions.items.find((question) => question.response_form !== null);
  const drafts = createDrafts(formed?.response_form?.reviews ?? []).map((draft) => ({
    ...draft,
    type: "edit" as const,
  }));
  const decisions = drafts.map(buildDecision).filter((decision) => decision !== null);
  expect(decisions).toHaveLength(1);
  const answered = await respondToInputRequest(known.asked, formed?.number ?? 0, { decisions });
  expect(JSON.parse(answered.response?.text ?? "").decisions[0].edited_action.args).toEqual({ to: "Ada", body: "Hi" });
  const stop = new AbortController();
  const events = await fetch(`/api/v1/events?cursor=${encodeURIComponent(`${known.asked}:0`)}`, {
    signal: stop.signal,
  });
  expect(events.headers.get("content-type")).toContain("text/event-stream");
  stop.abort();
});

test("training jobs are read and controlled, and versions change their state", async () => {
  await client.fetchInfiniteQuery(training.jobsQuery);
  const job = await client.fetchQuery(training.jobQuery(known.job));
  expect((await client.fetchQuery(training.metricsQuery(job))).length).toBeGreaterThan(0);
  await client.fetchQuery(training.jobEventsQuery(job));
  for (const verb of ["pause", "resume", "cancel"] as const) await training.controlJob(job.id, verb);
  await client.fetchQuery(training.versionsQuery);
  await client.fetchQuery(training.evaluationsQuery("small"));
  const [first = "", second = ""] = known.versions;
  await training.promoteVersion(first, true);
  await training.startCanary(second, 0.1);
  await training.rollBackVersion(second);
});

test("a prompt library is read, and a distillation job is started", async () => {
  await client.fetchQuery(training.promptLibraryQuery(known.library));
  await client.fetchQuery(training.distillationPreviewQuery("lessons"));
  const request = {
    engine: null,
    graph: null,
    tag: null,
    max_groups: 50,
    include_cases: true,
    max_cost_usd: 0.5,
    gate: null,
  };
  await updateTenant({ training_opt_in: true });
  const job = await training.startDistillation("lessons", request);
  await client.fetchQuery(training.distillationMetricsQuery(job));
});

test("the session ends", () => signOut());
