/**
 * Calls every API route that the web UI uses, through the web UI's own client code, against a running API.
 * `tests/api/test_web_ui_contract.py` compares the recorded exchanges with the OpenAPI document and names each call that
 * is missing here.
 */

import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { fromPreset, toPreset } from "@/features/home/question-presets";
import { buildRunRequest } from "@/features/home/request";
import { DEFAULT_SETTINGS } from "@/features/home/settings";
import { buildDecision, createDrafts } from "@/features/input-requests/decisions";
import { applyAction, buildEditRequest, editFromReport } from "@/features/report/edit-model";
import { buildFollowUp } from "@/features/run/follow-up";
import * as asking from "@/shared/api/asking";
import { draftsQuery } from "@/shared/api/drafts";
import { fileUrl, runFilesQuery } from "@/shared/api/files";
import { foundRunsQuery } from "@/shared/api/found-runs";
import { inputRequestsQuery, respondToInputRequest } from "@/shared/api/input-requests";
import { enginesQuery, graphsQuery, mcpServersQuery, tenantQuery, updateTenant } from "@/shared/api/installation";
import { langGraphRunQuery, respondToInterrupt } from "@/shared/api/langgraph-runs";
import * as library from "@/shared/api/library";
import * as notifications from "@/shared/api/notifications";
import * as providers from "@/shared/api/providers";
import * as reports from "@/shared/api/reports";
import * as changes from "@/shared/api/run-changes";
import { runTreeQuery } from "@/shared/api/run-trees";
import * as views from "@/shared/api/run-views";
import * as runs from "@/shared/api/runs";
import { sessionQuery, signOut } from "@/shared/api/session";
import * as settings from "@/shared/api/settings";
import * as shares from "@/shared/api/shares";
import { reportVersionsQuery, stepsWithPayloadQuery } from "@/shared/api/step-payloads";
import { threadQuery } from "@/shared/api/threads";
import * as training from "@/shared/api/training";
import * as signals from "@/shared/api/training-signals";
import { trajectoryQuery } from "@/shared/api/trajectories";
import { createEngine } from "@/shared/model-setup/use-default-model";

interface Known {
  ended: string;
  active: string;
  asked: string;
  of_langgraph: string;
  interrupted: string;
  number: number;
  rollout: string;
  source: string;
  text_id: string;
  versions: string[];
  library: string;
  job: string;
  model_server: string;
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

test("the settings of the installation: health, search engines, MCP servers, keys, spending and tool policies", async () => {
  const health = await client.fetchQuery(settings.healthQuery);
  expect(health.checks.map(({ name }) => name)).toContain("Postgres");
  expect((await client.fetchQuery(settings.storedDataQuery)).database_bytes).toBeGreaterThan(0);
  expect((await client.fetchQuery(settings.spendingQuery)).days).toHaveLength(settings.SPENDING_DAYS);
  const search = await client.fetchQuery(settings.searchSetupQuery);
  expect(search.engines.length).toBeGreaterThan(5);
  expect((await settings.runTestSearch("searxng", "coral reef")).problem).toContain("cannot be reached");
  const mcp = await client.fetchQuery(settings.mcpSetupQuery);
  expect(mcp.servers.map(({ name }) => name)).toEqual(["wiki"]);
  const listing = await settings.checkMcpServer("wiki");
  expect(listing.problem).toBe("");
  await settings.pinMcpServer("wiki", listing.sha256);
  await settings.unpinMcpServer("wiki");
  const request = { url: "https://localhost/mcp", bearer: null, tools: [] };
  expect((await settings.previewMcpServer("other", request)).problem).not.toBe("");
  await expect(settings.addMcpServer("other", request, listing.sha256)).rejects.toMatchObject({ status: 409 });
  const key = await settings.createApiKey("contract", 1);
  expect((await client.fetchQuery(settings.apiKeysQuery)).map(({ id }) => id)).toContain(key.id);
  await settings.revokeApiKey(key.id);
  const check = await settings.checkToolPolicy({
    text: '{"rules": [{"tool": "calculate", "allow_other_args": true}]}',
    graph: "quiet",
    scope: { web: false, code: false, mcp: [] },
    calls: [{ tool: "calculate", args: { expression: "6 * 7" } }],
  });
  expect(check.decisions[0]?.before.outcome).toBe("allow");
  await settings.putToolPolicy("sums", check.policy);
  expect((await client.fetchQuery(settings.toolPoliciesQuery)).map(({ name }) => name)).toEqual(["sums"]);
  await settings.deleteToolPolicy("sums");
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
    ...DEFAULT_SETTINGS,
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
    onlyDomains: "example.org",
    code: true,
    length: "brief" as const,
  };
  const run = await runs.createRun(buildRunRequest(draft, { graphs, toolPolicy: null }), "contract-1");
  for (const search of ["", "salt"]) {
    const recent = await client.fetchQuery(runs.recentRunsQuery(search));
    expect(recent.items.every(({ minimap }) => typeof minimap === "string")).toBe(true);
  }
  await runs.sendUserMessage(run.id, "Look at the rivers.");
  const plan = await client.fetchQuery(views.planQuery(run.id, true));
  const changed = await views.changePlan(run.id, plan.version, [{ text: "Which rivers?", must_answer: true }]);
  expect(changed.change?.state).toBe("queued");
  await runs.pauseRun(run.id);
  await runs.resumeRun(run.id);
  await runs.cancelRun(run.id, "finish");
  await runs.cancelRun(known.active, "discard");
});

test("a way to ask is saved, renamed, updated and deleted", async () => {
  const graphs = await client.fetchQuery(graphsQuery);
  const settings = {
    ...DEFAULT_SETTINGS,
    graph: graphs[0]?.name ?? "",
    engine: "extractive",
    turns: 300,
    usd: "2",
    web: true,
    excludedDomains: "ads.example",
    language: "de",
    reviewPlan: true,
  };
  const saved = await asking.createQuestionPreset("Contracts", toPreset(settings, graphs));
  expect(fromPreset(saved.settings, graphs, "")).toEqual(settings);
  await asking.changeQuestionPreset(saved.id, { name: "Contracts, long" });
  await asking.changeQuestionPreset(saved.id, { settings: toPreset({ ...settings, length: "long" }, graphs) });
  expect((await client.fetchQuery(asking.questionPresetsQuery)).items[0]?.settings.report_style?.length).toBe("long");
  await asking.deleteQuestionPreset(saved.id);
  await client.fetchQuery(asking.runStatisticsQuery);
});

test("a model is set up: a provider is stored, its models are listed, one is tested and answers by default", async () => {
  const kinds = await client.fetchQuery(providers.providerKindsQuery);
  expect(kinds.map(({ name }) => name)).toContain("hosted_vllm");
  const request = { provider: "hosted_vllm", api_base: known.model_server, key: "key-of-the-contract" };
  const stored = await providers.storeProvider("work", { ...request, max_concurrent_calls: null });
  expect(stored.key_set).toBe(true);
  await client.fetchQuery(providers.providersQuery);
  await client.fetchQuery(providers.providerModelsQuery("work"));
  await client.fetchQuery(providers.providerModelsQuery("work", "qwen"));
  expect((await providers.testProvider("work", "qwen")).capabilities[0]?.outcome).toBe("works");
  await providers.storePreset("qwen", { engines: { all: createEngine("work/qwen") }, budget: {} });
  expect((await client.fetchQuery(providers.presetsQuery)).map(({ name }) => name)).toContain("qwen");
  expect((await updateTenant({ default_preset: "qwen" })).default_preset).toBe("qwen");
  expect((await updateTenant({ default_preset: null })).default_preset).toBeNull();
  await providers.deletePreset("qwen");
  await providers.deleteProvider("work");
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
  const report = await client.fetchQuery(reports.reportQuery(run.id, true));
  expect(report?.citations).toHaveLength(1);
  for (const format of reports.EXPORT_FORMATS) {
    const exported = await reports.exportReport(run.id, format, 1, new AbortController().signal);
    expect(exported.name).toMatch(new RegExp(`\\.${format}$`));
  }
  const files = await client.fetchQuery(runFilesQuery(run.id));
  expect((await fetch(fileUrl(run.id, files.items[0]?.sha256 ?? ""))).ok).toBe(true);
  await reports.createRating(run.id, { sentence_id: "s1", value: 1, correction: "" });
  await reports.createRating(run.id, { sentence_id: null, value: -1, correction: "Name the river." });
  await client.fetchQuery(reports.ratingsQuery(run.id));
  await signals.setTrainingConsent(run.id, true);
  await signals.correctAnswer(run.id, "The Rhine.");
  await client.fetchQuery(signals.trainingSignalsQuery(run.id));
  const next = await runs.createRun(buildFollowUp(run, "And the lakes?", 4, "research"), "contract-2");
  expect(next.thread_id).toBe(run.thread_id);
  await runs.cancelRun(next.id, "discard");
  for (const query of [
    views.planQuery(run.id, false),
    views.nodesQuery(run.id, false),
    views.usageQuery(run.id, false),
    views.runSourcesQuery(run.id, false, 1),
    views.stepMatchesQuery(run.id, "salt", "", false),
    views.stepMatchesQuery(run.id, "", "speak", false),
  ]) {
    expect(await client.fetchQuery(query as ReturnType<typeof views.planQuery>)).toBeTruthy();
  }
  const changes = { at_seq: 1, message: "Only the rivers.", engines: {}, budget: { ...run.budget, max_turns: 6 } };
  const fork = await runs.forkRun(run.id, changes, "contract-3");
  expect(fork).toMatchObject({ forked_from_id: run.id, forked_at_seq: 1 });
  await runs.cancelRun(fork.id, "discard");
});

test("a report is shared, read without an account, and the link is revoked", async () => {
  const created = await shares.createShare(known.ended, { days: 7, label: "For the board", shows_question: true });
  const report = await client.fetchQuery(shares.sharedReportQuery(created.token));
  expect(report.version).toBe(created.share.version);
  expect((await fetch(shares.sharedFileUrl(created.token, "md"))).ok).toBe(true);
  const listed = await client.fetchInfiniteQuery(shares.sharesQuery(known.ended));
  expect(listed.pages[0]?.items.map((one) => one.id)).toContain(created.share.id);
  await shares.revokeShare(created.share.id);
});

test("a report is edited, its versions are compared, and an earlier one is restored", async () => {
  const report = await client.fetchQuery(reports.reportVersionQuery(known.ended, 1));
  const passages = await client.fetchInfiniteQuery(reports.evidenceQuery(known.ended, ""));
  expect(passages.pages[0]?.items).toBeDefined();
  const edited = applyAction(editFromReport(report), { type: "title", text: "Salt in rivers" });
  const saved = await reports.saveReport(known.ended, buildEditRequest(edited, { base: 1, latest: 1 }, "Named"));
  expect(saved).toMatchObject({ version: 2, title: "Salt in rivers", note: "Named" });
  expect(await client.fetchQuery(reports.changesQuery(known.ended, 1, 2))).toMatchObject({
    title_before: report.title,
  });
  expect((await reports.restoreReport(known.ended, 1, 2)).version).toBe(3);
  const versions = await client.fetchInfiniteQuery(reports.versionsQuery(known.ended));
  expect(versions.pages[0]?.items.map((one) => one.version)).toEqual([3, 2, 1]);
});

test("notifications are read, and a webhook is added, tried and removed", async () => {
  await client.fetchQuery(notifications.latestNotificationsQuery(false));
  const listed = await client.fetchInfiniteQuery(notifications.notificationsQuery);
  await notifications.readNotifications(listed.pages[0]?.items[0]?.id ?? null, null);
  const body = { address: "http://127.0.0.1:9/hook", events: ["run.done" as const], web_ui: "http://127.0.0.1:8400" };
  const { webhook } = await notifications.addWebhook(body);
  expect((await client.fetchQuery(notifications.webhooksQuery)).map(({ id }) => id)).toContain(webhook.id);
  expect((await notifications.tryWebhook(webhook.id)).problem).toBeTruthy();
  await client.fetchQuery(notifications.webhookAttemptsQuery(webhook.id));
  await notifications.deleteWebhook(webhook.id);
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
    { q: "salt", order: "newest" },
    { order: "oldest" },
    { order: "cost", state: "ended" },
    { order: "duration" },
  ];
  for (const filter of filters) {
    await client.fetchInfiniteQuery(runs.runListQuery(filter));
    await client.fetchQuery(runs.latestRunsQuery(filter, 30));
  }
  await client.fetchQuery(foundRunsQuery("salt", 6));
  const change = { title: "Salt", tags: ["sea"], pinned: true, archived: false };
  const unknown = "019aa6f0-0000-7000-8000-000000000000";
  const changed = await changes.changeRuns([known.ended, unknown].map((run_id) => ({ run_id, ...change })));
  expect(changed.map(({ run, problem }) => [run?.tags, problem?.status])).toEqual([
    [["sea"], undefined],
    [undefined, 404],
  ]);
  const first = await client.fetchInfiniteQuery({ ...runs.runListQuery({}), staleTime: 0 });
  expect(first.pages[0]?.pinned.map(({ id }) => id)).toEqual([known.ended]);
  expect(first.pages[0]?.items.map(({ id }) => id)).not.toContain(known.ended);
  expect((await client.fetchQuery(changes.runCountsQuery)).pinned).toBe(1);
  expect((await client.fetchInfiniteQuery(shares.allSharesQuery)).pages[0]?.items).toBeDefined();
  expect((await client.fetchQuery(runs.tagsQuery)).items).toEqual(["sea"]);
  const deletions = await changes.deleteRuns([{ id: known.active, created_at: "2026-01-01T00:00:00Z" }], true);
  expect(deletions.map(({ deletion }) => deletion?.run_ids)).toEqual([[known.active]]);
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
  const made = await client.fetchQuery(langGraphRunQuery(known.of_langgraph, 1));
  expect(made.interrupts).toEqual([]);
  await expect(respondToInterrupt(known.of_langgraph, "none", { text: "yes" })).rejects.toMatchObject({ status: 404 });
  const [interrupt] = (await client.fetchQuery(langGraphRunQuery(known.interrupted, 1))).interrupts;
  expect(interrupt?.prompt).toBe("May I go?");
  expect((await client.fetchQuery(runs.runQuery(known.interrupted))).interrupted).toBe(true);
  const resumed = await respondToInterrupt(known.interrupted, interrupt?.id ?? "", { text: "yes" });
  expect(resumed.protocol).toBe("langgraph");
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
