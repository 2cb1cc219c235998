/**
 * Every call that the web UI makes, by the code that makes it, against a running API. The server's side of the record
 * is held against the OpenAPI document by `tests/api/test_page_contract.py`, which also says which call is missing here.
 */

import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { decisionOf, startDrafts } from "@/features/asking/decisions";
import { runRequest } from "@/features/home/request";
import { followUpRequest } from "@/features/run/follow-up";
import { changeTenant, enginesQuery, graphsQuery, mcpServersQuery, tenantQuery } from "@/shared/api/catalog";
import { familyQuery } from "@/shared/api/families";
import { fileAddress, runFilesQuery } from "@/shared/api/files";
import { versionsQuery as reportVersionsQuery, wholeStepsQuery } from "@/shared/api/flow";
import * as library from "@/shared/api/library";
import { answerQuestion, questionsQuery } from "@/shared/api/questions";
import { rate, ratingsQuery, reportQuery } from "@/shared/api/reports";
import * as runs from "@/shared/api/runs";
import { sessionQuery, signOut } from "@/shared/api/session";
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
  artefact: string;
  versions: string[];
  library: string;
  job: string;
}

const known = JSON.parse(process.env.OFFING_CONTRACT ?? "{}") as Known;
const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });

const picked = (name: string, text: string) => ({ name, file: new File([text], name) });

test("the session, and what this installation offers", async () => {
  expect((await client.fetchQuery(sessionQuery)).csrf_token).toBeTruthy();
  const graphs = await client.fetchQuery(graphsQuery);
  expect(graphs.length).toBeGreaterThan(0);
  await client.fetchQuery(enginesQuery);
  await client.fetchQuery(mcpServersQuery);
  const tenant = await client.fetchQuery(tenantQuery);
  await changeTenant({ training_opt_in: tenant.training_opt_in });
  await changeTenant({ daily_spend_usd: 5 });
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
  for (const collection of [null, "papers", ""]) {
    await client.fetchInfiniteQuery(library.sourcesQuery(collection, ""));
    await client.fetchInfiniteQuery(library.sourcesQuery(collection, "salt"));
    await client.fetchQuery(library.passagesQuery(collection, "river salt"));
  }
  await client.fetchQuery(library.passageQuery({ artefact: known.artefact, start: 0, end: 10 }));
  const erased = await library.eraseSource(single.files[0]?.source?.id ?? "");
  expect(erased.sources).toBe(1);
});

test("a question is asked, followed, steered, paused, resumed and ended", async () => {
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
  const run = await runs.createRun(runRequest(draft, graphs), "contract-1");
  await client.fetchInfiniteQuery(runs.runsQuery(""));
  await client.fetchInfiniteQuery(runs.runsQuery("salt"));
  await runs.steerRun(run.id, "Look at the rivers.");
  await runs.pauseRun(run.id);
  await runs.resumeRun(run.id);
  await runs.cancelRun(run.id, "write");
  await runs.cancelRun(known.active, "discard");
});

test("an ended run is read, exported, rated and followed up", async () => {
  const run = await client.fetchQuery(runs.runQuery(known.ended));
  const { items } = await runs.fetchSteps(run.id, 0);
  expect(items.length).toBeGreaterThan(2);
  await client.fetchQuery(runs.stepQuery(run.id, 1));
  await client.fetchQuery(familyQuery(run));
  await client.fetchQuery(threadQuery(run.thread_id));
  await client.fetchQuery(wholeStepsQuery(run.id, ["memory", "turn"], run.last_seq, false));
  await client.fetchQuery(reportVersionsQuery(run.id, false));
  await client.fetchInfiniteQuery(trajectoryQuery(known.rollout, false));
  const report = await client.fetchQuery(reportQuery(run.id, true));
  expect(report?.citations).toHaveLength(1);
  for (const format of ["md", "html", "json"] as const) {
    expect((await fetch(runs.exportAddress(run.id, format))).ok).toBe(true);
  }
  const files = await client.fetchQuery(runFilesQuery(run.id));
  expect((await fetch(fileAddress(run.id, files.items[0]?.sha256 ?? ""))).ok).toBe(true);
  await rate(run.id, { claim: "s1", value: 1, correction: "" });
  await rate(run.id, { claim: null, value: -1, correction: "Name the river." });
  await client.fetchQuery(ratingsQuery(run.id));
  const next = await runs.createRun(followUpRequest(run, "And the lakes?", 4), "contract-2");
  expect(next.thread_id).toBe(run.thread_id);
  await runs.cancelRun(next.id, "discard");
  const fork = await runs.forkRun(run.id, 1, "contract-3");
  expect(fork).toMatchObject({ forked_from: run.id, forked_at: 1 });
  await runs.cancelRun(fork.id, "discard");
});

test("a run's question is read and answered, and its events are followed", async () => {
  const questions = await client.fetchQuery(questionsQuery(known.asked));
  expect(questions.items).toHaveLength(2);
  await answerQuestion(known.asked, known.number, { verdict: "edited", steps: ["look again"], comment: "" });
  const formed = questions.items.find((question) => question.form !== null);
  const drafts = startDrafts(formed?.form?.reviews ?? []).map((draft) => ({ ...draft, type: "edit" as const }));
  const decisions = drafts.map(decisionOf).filter((decision) => decision !== null);
  expect(decisions).toHaveLength(1);
  const answered = await answerQuestion(known.asked, formed?.number ?? 0, { decisions });
  expect(JSON.parse(answered.answer?.text ?? "").decisions[0].edited_action.args).toEqual({ to: "Ada", body: "Hi" });
  const stop = new AbortController();
  const events = await fetch(`/api/v1/events?cursor=${encodeURIComponent(`${known.asked}:0`)}`, {
    signal: stop.signal,
  });
  expect(events.headers.get("content-type")).toContain("text/event-stream");
  stop.abort();
});

test("training jobs are watched and told, and versions change their state", async () => {
  await client.fetchInfiniteQuery(training.jobsQuery);
  const job = await client.fetchQuery(training.jobQuery(known.job));
  expect((await client.fetchQuery(training.metricsQuery(job))).length).toBeGreaterThan(0);
  await client.fetchQuery(training.jobEventsQuery(job));
  for (const verb of ["pause", "resume", "cancel"] as const) await training.tellJob(job.id, verb);
  await client.fetchQuery(training.versionsQuery);
  await client.fetchQuery(training.evaluationsQuery("small"));
  const [first = "", second = ""] = known.versions;
  await training.promoteVersion(first, true);
  await training.tryVersion(second, 0.1);
  await training.takeVersionBack(second);
});

test("a prompt library is read, and a job that makes one is started", async () => {
  await client.fetchQuery(training.libraryTextQuery(known.library));
  await client.fetchQuery(training.outlookQuery("lessons"));
  const request = { engine: null, graph: null, tag: null, groups: 50, cases: true, usd: 0.5, gate: null };
  await changeTenant({ training_opt_in: true });
  const job = await training.learn("lessons", request);
  await client.fetchQuery(training.learningQuery(job));
});

test("the session ends", () => signOut());
