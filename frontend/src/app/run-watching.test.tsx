import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import type { RunPlan, RunSource } from "@/shared/api/run-views";
import { aRun, aStep, RUN_ID, SOURCE_ID, steps, TEXT_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const ADDRESS = `/runs/${RUN_ID}`;
const DONE = { status: "done", stop_reason: "answered", ended_at: "2026-03-01T10:01:00Z" } as const;

beforeEach(() => sessionStorage.clear());

function serveRun(run = aRun(), stored = steps(1, run.last_seq)) {
  server.use(
    http.get(at("/runs/:id"), () => HttpResponse.json(run)),
    http.get(at("/runs/:id/steps"), ({ request }) => {
      const after = Number(new URL(request.url).searchParams.get("after"));
      return HttpResponse.json({ items: stored.slice(after, after + 256), next: null });
    }),
  );
}

function aPlan(part: Partial<RunPlan> = {}): RunPlan {
  const item = { must_answer: false, missing: "" };
  return {
    supports_changes: true,
    version: 3,
    items: [
      { ...item, text: "How are connections kept?", state: "covered" },
      { ...item, text: "When are they closed?", state: "open" },
    ],
    change: null,
    ...part,
  };
}

/** Serves a plan, and takes changes of it as the server does. */
function servePlan(plan = aPlan()) {
  const state = { plan, sent: [] as unknown[] };
  server.use(
    http.get(at("/runs/:id/plan"), () => HttpResponse.json(state.plan)),
    http.put(at("/runs/:id/plan"), async ({ request }) => {
      const body = (await request.json()) as { version: number; items: RunPlan["items"] };
      state.sent.push(body);
      if (body.version !== state.plan.version) {
        return problem(409, "The plan has changed.", { remedy: "Read the plan again, and change that one." });
      }
      const seq = state.plan.version + 6;
      const items = body.items.map((item) => ({ ...item, state: "open" as const, missing: "" }));
      state.plan = aPlan({ version: seq, items, change: { seq, state: "queued", consumed_seq: 0, used_seq: 0 } });
      return HttpResponse.json(state.plan);
    }),
  );
  return state;
}

// The plan

test("a plan is edited, sent, and waits until the run reads it", async () => {
  serveRun(aRun({ last_seq: 3, step_marks: "nnp" }));
  const served = servePlan();
  const { user } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("button", { name: "Edit the plan" }));
  const form = within(screen.getByRole("form", { name: "Edit the plan" }));
  expect(form.getByRole("button", { name: "Send the change" })).toBeDisabled();
  await user.click(form.getByRole("button", { name: "Move part 2 up" }));
  await user.click(form.getAllByRole("checkbox", { name: "must be answered" })[0] as HTMLElement);
  await user.click(form.getByRole("button", { name: "Add a part" }));
  await user.type(form.getByRole("textbox", { name: "Part 3" }), "What does pipelining do?");
  await user.click(form.getByRole("button", { name: "Send the change" }));
  expect(await screen.findByText(/Your change waits/)).toBeVisible();
  expect(served.sent).toEqual([
    {
      version: 3,
      items: [
        { text: "When are they closed?", must_answer: true },
        { text: "How are connections kept?", must_answer: false },
        { text: "What does pipelining do?", must_answer: false },
      ],
    },
  ]);
  await user.click(screen.getByRole("button", { name: "Undo" }));
  await waitFor(() => expect(served.sent).toHaveLength(2));
  expect(served.sent[1]).toMatchObject({ version: 9, items: [{ text: "How are connections kept?" }, {}] });
});

test("edits that were not sent are there after a reload", async () => {
  serveRun();
  servePlan();
  const first = renderPage(ADDRESS);
  await first.user.click(await screen.findByRole("button", { name: "Edit the plan" }));
  await first.user.type(screen.getByRole("textbox", { name: "Part 1" }), " Really?");
  first.unmount();
  renderPage(ADDRESS);
  expect(await screen.findByRole("textbox", { name: "Part 1" })).toHaveValue("How are connections kept? Really?");
});

test("edits of a plan that has changed meanwhile are kept, and replace it only on request", async () => {
  serveRun();
  const served = servePlan();
  const { user } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("button", { name: "Edit the plan" }));
  await user.type(screen.getByRole("textbox", { name: "Part 1" }), " Really?");
  served.plan = aPlan({
    version: 12,
    items: [{ text: "From elsewhere", must_answer: false, state: "open", missing: "" }],
  });
  await user.click(screen.getByRole("button", { name: "Send the change" }));
  expect(await screen.findByText("From elsewhere")).toBeVisible();
  expect(screen.getByRole("button", { name: "Send the change" })).toBeDisabled();
  await user.click(screen.getByRole("button", { name: "Replace it with my edits" }));
  await user.click(screen.getByRole("button", { name: "Send the change" }));
  expect(await screen.findByText(/Your change waits/)).toBeVisible();
  expect(served.sent[1]).toMatchObject({ version: 12, items: [{ text: "How are connections kept? Really?" }, {}] });
});

test("a change that could not be sent says why and keeps the edits", async () => {
  serveRun();
  servePlan();
  server.use(http.put(at("/runs/:id/plan"), () => problem(422, "A part is too long.")));
  const { user } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("button", { name: "Edit the plan" }));
  await user.type(screen.getByRole("textbox", { name: "Part 2" }), " Why?");
  await user.click(screen.getByRole("button", { name: "Send the change" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("A part is too long.");
  expect(screen.getByRole("textbox", { name: "Part 2" })).toHaveValue("When are they closed? Why?");
});

test("a change that was used links to the step that used it", async () => {
  serveRun(aRun({ last_seq: 3, step_marks: "nnp" }));
  servePlan(aPlan({ change: { seq: 3, state: "used", consumed_seq: 8, used_seq: 9 } }));
  const { user, router } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("button", { name: "step 9" }));
  expect(router.state.location.search).toMatchObject({ step: 9, tab: "timeline" });
});

test("a graph without a plan says so and offers no editing", async () => {
  serveRun();
  servePlan(aPlan({ supports_changes: false, items: [] }));
  renderPage(ADDRESS);
  expect(await screen.findByText(/This graph has no plan that can be changed/)).toBeVisible();
  expect(screen.queryByRole("button", { name: "Edit the plan" })).toBeNull();
});

// The timeline

function serveMatches(
  total: number,
  items = [
    { seq: 2, excerpt: "deep in the text" },
    { seq: 4, excerpt: "" },
  ],
) {
  const asked: string[] = [];
  server.use(
    http.get(at("/runs/:id/step-matches"), ({ request }) => {
      const query = new URL(request.url).searchParams;
      asked.push(`${query.get("q")}|${query.get("node") ?? ""}`);
      return HttpResponse.json({ items, total, next: null });
    }),
  );
  return asked;
}

test("a search shows the matching steps with excerpts, is part of the address, and goes from match to match", async () => {
  serveRun(aRun({ ...DONE, last_seq: 5, step_marks: "npsmv" }), steps(1, 5));
  const asked = serveMatches(2);
  const { user, router } = renderPage(`${ADDRESS}?tab=timeline`);
  await user.type(await screen.findByRole("searchbox", { name: "Search in the steps" }), "pool");
  expect(await screen.findByText("deep in the text")).toBeVisible();
  expect(asked).toEqual(["pool|"]);
  expect(router.state.location.search).toMatchObject({ q: "pool" });
  expect(screen.queryByText("Step number 3")).toBeNull();
  await user.keyboard("{Enter}");
  await waitFor(() => expect(router.state.location.search).toMatchObject({ step: 2 }));
  expect(screen.getByText("match 1 of 2")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Next match" }));
  await waitFor(() => expect(router.state.location.search).toMatchObject({ step: 4 }));
  await user.click(screen.getByRole("button", { name: "Next match" }));
  await waitFor(() => expect(router.state.location.search).toMatchObject({ step: 2 }));
});

test("a search works together with a filter by mark", async () => {
  serveRun(aRun({ ...DONE, last_seq: 5, step_marks: "npsmv" }), steps(1, 5));
  serveMatches(2);
  renderPage(`${ADDRESS}?tab=timeline&q=pool&only=p`);
  const timeline = within(await screen.findByRole("tabpanel"));
  expect(await timeline.findByText("Step number 2")).toBeVisible();
  expect(timeline.queryByText("Step number 4")).toBeNull();
  expect(screen.getByRole("searchbox", { name: "Search in the steps" })).toHaveValue("pool");
});

test("a search without a match says so, and a failed one offers to try again", async () => {
  serveRun(aRun({ ...DONE, last_seq: 5, step_marks: "npsmv" }), steps(1, 5));
  serveMatches(0, []);
  const page = renderPage(`${ADDRESS}?tab=timeline&q=pool`);
  expect(await screen.findByText("No step contains this.")).toBeVisible();
  page.unmount();
  server.use(http.get(at("/runs/:id/step-matches"), () => problem(422, "This cannot be searched for.")));
  renderPage(`${ADDRESS}?tab=timeline&q=pool`);
  expect(await screen.findByText("This cannot be searched for.", { selector: "p" })).toBeVisible();
  expect(screen.queryByText("No step contains this.")).toBeNull();
});

// The graph

test("a node of the drawing opens its steps, and the table has the same numbers", async () => {
  serveRun(
    aRun({
      last_seq: 5,
      step_marks: "npsmv",
      live: { current_action: "planner", since: "2026-03-01T10:00:00Z", worker_heartbeat_at: null },
    }),
    steps(1, 5),
  );
  const node = { steps: 4, cost_usd: 0, last_seq: 4, roles: ["planner"] };
  server.use(
    http.get(at("/runs/:id/nodes"), () =>
      HttpResponse.json({ items: [{ ...node, node: "planner", visits: 3, ms: 1_200, tokens: 900 }] }),
    ),
  );
  const asked = serveMatches(2);
  const { user, router } = renderPage(`${ADDRESS}?tab=graph`);
  const drawn = await screen.findByRole("button", { name: /planner.*3 visits, 1.2 s, 900 tok/ });
  expect(drawn).toHaveAttribute("aria-current", "step");
  expect(screen.getByRole("button", { name: /executor.*no calls yet/ })).toBeVisible();
  const row = within(screen.getByRole("table", { name: "What each node has used" })).getByRole("row", {
    name: /planner/,
  });
  expect(row).toHaveTextContent("900");
  await user.click(drawn);
  await waitFor(() => expect(router.state.location.search).toMatchObject({ tab: "timeline", node: "planner" }));
  expect(asked).toContain("|planner");
  await user.click(await screen.findByRole("button", { name: "Show all" }));
  expect(await screen.findByText("Step number 3")).toBeVisible();
});

test("a graph that is not installed leaves the table of its nodes", async () => {
  serveRun(aRun({ graph: "gone" }));
  const node = { node: "think", visits: 1, steps: 1, ms: 5, tokens: 0, cost_usd: 0, last_seq: 1, roles: [] };
  server.use(http.get(at("/runs/:id/nodes"), () => HttpResponse.json({ items: [node] })));
  renderPage(`${ADDRESS}?tab=graph`);
  expect(await screen.findByText("This graph cannot be drawn")).toBeVisible();
  expect(screen.getByRole("button", { name: "think" })).toBeVisible();
});

// Cost

test("tokens and cost are shown by role and against the budget, with what is not in the table", async () => {
  const budget = { ...aRun().budget, max_cost_usd: 1 };
  serveRun(aRun({ ...DONE, budget, usage: { turns: 2, tokens: 3_000, cost_usd: 0.5, seconds: 4 } }));
  const role = {
    role: "planner",
    engine: "litellm",
    model: "openai/m",
    calls: 2,
    rejected: 1,
    prompt_tokens: 1_500,
    cached_prompt_tokens: 900,
    completion_tokens: 500,
    reasoning_tokens: 0,
    cost_usd: 0.4,
    is_priced: true,
    ms: 900,
  };
  server.use(
    http.get(at("/runs/:id/usage"), () =>
      HttpResponse.json({
        roles: [role],
        points: [
          { turn: 1, tokens: 800, cost_usd: 0.1 },
          { turn: 2, tokens: 2_000, cost_usd: 0.4 },
        ],
      }),
    ),
  );
  const { user } = renderPage(`${ADDRESS}?tab=cost`);
  expect(await screen.findByRole("img", { name: "Cost: $0.40 of $1.00" })).toBeVisible();
  expect(screen.getByRole("row", { name: /planner.*openai\/m.*1 rejected.*1,500.*900 cached.*500/ })).toBeVisible();
  expect(screen.getByText(/used 1,000 tokens and \$0.10/)).toBeVisible();
  await user.click(screen.getByText("The numbers of the charts"));
  expect(await screen.findByRole("row", { name: "2 2,000 $0.40" })).toBeVisible();
});

// Sources

function aRunSource(part: Partial<RunSource>): RunSource {
  return {
    key: "k",
    source_id: null,
    title: "",
    name: "",
    state: "found",
    reason: "",
    step_seqs: [2],
    step_count: 1,
    spans: [],
    span_count: 0,
    ...part,
  };
}

test("sources are filtered by their state, with reasons, and their stored text is read", async () => {
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nw" }));
  const items = [
    aRunSource({
      key: SOURCE_ID,
      source_id: SOURCE_ID,
      title: "undici: Client",
      state: "cited",
      span_count: 1,
      spans: [{ text_id: TEXT_ID, start: 20, end: 48 }],
    }),
    aRunSource({ key: "https://b.example", name: "https://b.example", state: "blocked", reason: "Too many calls." }),
  ];
  server.use(http.get(at("/runs/:id/sources"), () => HttpResponse.json({ items, total: 2, is_complete: true })));
  const { user } = renderPage(`${ADDRESS}?tab=sources`);
  const view = within(await screen.findByRole("region", { name: "Sources" }));
  expect(view.getByText("Too many calls.")).toBeVisible();
  await user.click(view.getByRole("button", { name: "Cited 1" }));
  expect(view.queryByText("Too many calls.")).toBeNull();
  expect(view.getByText("keeps one connection open")).toBeVisible();
  await user.click(view.getByRole("button", { name: "undici: Client" }));
  const reader = within(await screen.findByRole("dialog", { name: "undici: Client", hidden: true }));
  expect(await reader.findByText(/keeps one connection open/, { selector: "mark" })).toBeInTheDocument();
});

// Forks

test("a fork gets another message and budget, and what was typed stays after a failure", async () => {
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "ns" }), steps(1, 2));
  const bodies: unknown[] = [];
  server.use(
    http.post(at("/runs/:id/fork"), async ({ request }) => {
      bodies.push(await request.json());
      return problem(409, "The version of the graph is not installed.");
    }),
  );
  const { user } = renderPage(`${ADDRESS}?tab=timeline`);
  await user.click(await screen.findByText("Step number 2"));
  await user.click(await screen.findByRole("button", { name: "Fork from here…" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Fork after step 2" }));
  await user.type(await dialog.findByLabelText("Message to its planner"), "Only rivers.");
  await user.clear(dialog.getByLabelText("Turns"));
  expect(dialog.getByRole("button", { name: "Create the fork" })).toBeDisabled();
  await user.type(dialog.getByLabelText("Turns"), "20");
  await user.click(dialog.getByRole("button", { name: "Create the fork" }));
  expect(await dialog.findByText("The version of the graph is not installed.", { selector: "p" })).toBeVisible();
  expect(bodies).toEqual([
    { at_seq: 2, message: "Only rivers.", engines: {}, budget: { ...aRun().budget, max_turns: 20 } },
  ]);
  expect(dialog.getByLabelText("Message to its planner")).toHaveValue("Only rivers.");
});

test("a user message is changed in a fork that continues before it", async () => {
  const message = aStep(2, { kind: "user_message", label: "user_message", title: "Look at lakes." });
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nh" }), [aStep(1), message]);
  server.use(
    http.get(at("/runs/:id/steps/2"), () => HttpResponse.json({ ...message, payload: { text: "Look at lakes." } })),
  );
  const { user } = renderPage(`${ADDRESS}?tab=timeline`);
  await user.click(await screen.findByText("Look at lakes."));
  await user.click(await screen.findByRole("button", { name: "Change this message in a fork…" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Fork after step 1" }));
  expect(await dialog.findByLabelText("Message to its planner")).toHaveValue("Look at lakes.");
});

// The title

test("the title of the tab says when the run waits for a person and when it is done", async () => {
  serveRun(aRun({ status: "waiting", pending_input_requests: 1, waiting_for: "a person" }));
  const page = renderPage(ADDRESS);
  await waitFor(() => expect(document.title).toBe("Waiting for you: How does undici reuse connections?"));
  page.unmount();
  serveRun(aRun(DONE));
  renderPage(ADDRESS);
  await waitFor(() => expect(document.title).toBe("Answered: How does undici reuse connections?"));
});
