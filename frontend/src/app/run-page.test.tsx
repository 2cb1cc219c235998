import { act, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { aReport, aRun, aStep, aTrajectory, RUN_ID, steps } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, server } from "@/testing/server";

const ADDRESS = `/runs/${RUN_ID}`;
const DONE = { status: "done", stop_reason: "answered", ended_at: "2026-03-01T10:01:00Z" } as const;

function serveRun(run = aRun(), stored = steps(1, run.last_seq)) {
  server.use(
    http.get(at("/runs/:id"), () => HttpResponse.json(run)),
    http.get(at("/runs/:id/steps"), ({ request }) => {
      const after = Number(new URL(request.url).searchParams.get("after"));
      return HttpResponse.json({ items: stored.slice(after, after + 256), next: null });
    }),
  );
}

test("an active run shows its stored steps and then those of the stream, each once", async () => {
  serveRun(aRun({ last_seq: 3, step_marks: "nns" }));
  const { sources } = renderPage(ADDRESS);
  await screen.findByText("Step number 3");
  expect(sources[0]?.cursor).toBe(`${RUN_ID}:3`);
  act(() => {
    sources[0]?.send("step", aStep(3));
    sources[0]?.send("step", aStep(4));
  });
  await screen.findByText("Step number 4");
  expect(screen.getAllByText("Step number 3")).toHaveLength(1);
});

test("steps that the stream skipped are fetched", async () => {
  const stored = steps(1, 6);
  serveRun(aRun({ last_seq: 2, step_marks: "nn" }), stored);
  const { sources } = renderPage(ADDRESS);
  await screen.findByText("Step number 2");
  act(() => sources[0]?.send("step", aStep(6)));
  await screen.findByText("Step number 4");
  await screen.findByText("Step number 6");
});

test("of ten thousand steps only the visible ones are rendered", async () => {
  const marks = "npsmv".repeat(2_000);
  serveRun(aRun({ ...DONE, last_seq: marks.length, step_marks: marks }), steps(1, marks.length));
  renderPage(`${ADDRESS}?tab=timeline`);
  await screen.findByText("Step number 5");
  const rows = within(screen.getByRole("tabpanel")).getAllByRole("listitem");
  expect(rows.length).toBeLessThan(60);
});

test("the header shows the current action, and its duration after a few seconds", async () => {
  const since = new Date(Date.now() - 8_000).toISOString();
  serveRun(
    aRun({ live: { current_action: "read_source: Pool", since, worker_heartbeat_at: new Date().toISOString() } }),
  );
  renderPage(ADDRESS);
  expect(await screen.findByText("Pool")).toBeVisible();
  expect(screen.getByText(/reading/)).toBeVisible();
  expect(screen.getByText(/· \d+ s/)).toBeVisible();
});

test("the duration of a wait starts when the wait began", async () => {
  const hour = new Date(Date.now() - 3_600_000).toISOString();
  const since = new Date(Date.now() - 240_000).toISOString();
  serveRun(aRun({ status: "queued", created_at: hour, started_at: hour, waiting_since: since }));
  renderPage(ADDRESS);
  expect(await screen.findByText(/waiting for a worker/)).toBeVisible();
  expect(screen.getByText(/· 4 min/)).toBeVisible();
});

test("Back goes through the tabs and not through the selected steps", async () => {
  serveRun(aRun({ ...DONE, last_seq: 5, step_marks: "npsmw" }), steps(1, 5));
  const { user, router } = renderPage(`${ADDRESS}?tab=timeline`);
  const rows = within(await screen.findByRole("tabpanel"));
  await user.click(await rows.findByText("Step number 2"));
  await user.click(await rows.findByText("Step number 3"));
  await user.click(screen.getByRole("tab", { name: /Sources/ }));
  await user.click(screen.getByRole("tab", { name: /Tokens/ }));
  const selectedTab = () => screen.getByRole("tab", { selected: true }).textContent;
  expect(selectedTab()).toBe("Tokens");
  act(() => router.history.back());
  await waitFor(() => expect(selectedTab()).toMatch(/^Sources/));
  act(() => router.history.back());
  await waitFor(() => expect(selectedTab()).toBe("Timeline"));
  expect(router.state.location.search).toMatchObject({ step: 3 });
});

test("a worker without a heartbeat is reported", async () => {
  const old = new Date(Date.now() - 40_000).toISOString();
  serveRun(aRun({ live: { current_action: "read_source: Pool", since: old, worker_heartbeat_at: old } }));
  renderPage(ADDRESS);
  expect(await screen.findByText(/no heartbeat from the worker for \d+ s/)).toBeVisible();
});

test("a lost connection is reported, and that the run continues", async () => {
  serveRun();
  const { sources } = renderPage(ADDRESS);
  await waitFor(() => expect(sources).toHaveLength(1));
  act(() => sources[0]?.fail(false));
  expect(await screen.findByText(/the run continues/)).toBeVisible();
});

test("a pause request carries the session's CSRF token, and the button confirms it at once", async () => {
  serveRun();
  let token: string | null = null;
  server.use(
    http.post(at("/runs/:id/pause"), ({ request }) => {
      token = request.headers.get("X-CSRF-Token");
      const { live, step_marks: marks, ...out } = aRun();
      return HttpResponse.json(out);
    }),
  );
  const { user } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("button", { name: "Pause" }));
  expect(await screen.findByRole("button", { name: /Pausing/ })).toBeDisabled();
  expect(token).toBe("token-of-this-session");
});

test("cancelling asks for confirmation and sends nothing before", async () => {
  serveRun();
  let mode = "";
  server.use(
    http.post(at("/runs/:id/cancel"), async ({ request }) => {
      mode = ((await request.json()) as { mode: string }).mode;
      const { live, step_marks: marks, ...out } = aRun({ status: "cancelled", stop_reason: "cancelled" });
      return HttpResponse.json(out);
    }),
  );
  const { user } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("button", { name: "Cancel" }));
  expect(mode).toBe("");
  await user.click(screen.getByRole("button", { name: "Cancel without a report" }));
  expect(await screen.findByText("Cancelled")).toBeVisible();
  expect(mode).toBe("discard");
});

test("a citation shows its quote in context on focus, and a click pins it beside the report", async () => {
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nw" }));
  const { user, router } = renderPage(ADDRESS);
  const marker = await screen.findByRole("button", { name: "Citation 1: undici: Client" });
  await user.hover(marker);
  const card = await screen.findByRole("tooltip");
  expect(await within(card).findByText(/A client is made for one origin/)).toBeVisible();
  expect(within(card).getByText("✓ quote verified")).toBeVisible();
  expect(within(card).getByText("sha 9f3c…21")).toBeVisible();
  await user.click(marker);
  const evidence = screen.getByRole("region", { name: "Evidence" });
  expect(await within(evidence).findByText("keeps one connection open")).toBeVisible();
  expect(router.state.location.search).toMatchObject({ cite: [1] });
});

test("a pinned citation shows the author and date of its source, as text, and its page", async () => {
  const report = aReport();
  const description = "by <img src=x> Ann Lee · guide.pdf · dated 5 March 2024";
  const sources = report.sources.map((source) => ({ ...source, description }));
  const citations = report.citations.map((citation) => ({
    ...citation,
    position: "page 3",
    position_texts: [{ code: "page" as const, parameters: { number: "3" } }],
  }));
  server.use(http.get(at("/runs/:id/report"), () => HttpResponse.json({ ...report, sources, citations })));
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nw" }));
  const { user, container } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("button", { name: "Citation 1: undici: Client" }));
  const evidence = screen.getByRole("region", { name: "Evidence" });
  expect(await within(evidence).findByText(description)).toBeVisible();
  expect(within(evidence).getByText("undici: Client, page 3")).toBeVisible();
  expect(container.querySelector("img")).toBeNull();
});

test("an unsupported sentence is marked and listed with the reason", async () => {
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nw" }));
  renderPage(ADDRESS);
  const list = await screen.findByRole("region", { name: "Unsupported sentences" });
  expect(within(list).getByText("“It is always faster.”")).toBeVisible();
  expect(within(list).getByText("no source; The quote is not there.")).toBeVisible();
  expect(screen.getByText("It is always faster.")).toHaveClass("unsupported");
});

test("a failed run says so in plain words, and its question can be asked again", async () => {
  const error = "KeyError: <b>plan</b>";
  serveRun(aRun({ status: "failed", stop_reason: "graph_error", error, question: "Does pooling help?" }));
  const { user, router } = renderPage(ADDRESS);
  expect(await screen.findByText("The run failed.")).toBeVisible();
  expect(screen.getByText(error)).not.toBeVisible();
  await user.click(screen.getByText("Error message"));
  expect(screen.getByText(error)).toBeVisible();
  await user.click(screen.getByRole("link", { name: "Ask again" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/"));
  await waitFor(() => expect(document.getElementById("question")).toHaveValue("Does pooling help?"));
});

test("what a report could not establish has a heading of its own", async () => {
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nw" }));
  renderPage(ADDRESS);
  const heading = await screen.findByRole("heading", { name: "Limits" });
  expect(heading.parentElement).toHaveTextContent("No measurement was found.");
});

test("the text of a report is never interpreted as HTML", async () => {
  const bad = "<img src=x onerror=alert(1)>";
  server.use(http.get(at("/runs/:id/report"), () => HttpResponse.json(aReport({ title: bad }))));
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nw" }));
  const { container } = renderPage(ADDRESS);
  expect(await screen.findByRole("heading", { name: bad })).toBeVisible();
  expect(container.querySelector("img")).toBeNull();
});

test("a partial report explains why and offers to dig deeper in its thread", async () => {
  let sent: Record<string, unknown> = {};
  server.use(
    http.get(at("/runs/:id/report"), () => HttpResponse.json(aReport({ status: "partial", reason: "turn_limit" }))),
    http.post(at("/runs"), async ({ request }) => {
      sent = (await request.json()) as Record<string, unknown>;
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  serveRun(aRun({ ...DONE, stop_reason: "turn_limit", last_seq: 2, step_marks: "nw" }));
  const { user } = renderPage(ADDRESS);
  expect(await screen.findByText(/used all its turns/)).toBeVisible();
  await user.click(await screen.findByRole("button", { name: "Dig deeper, up to 40 turns" }));
  await waitFor(() => expect(sent).toMatchObject({ thread_id: aRun().thread_id, budget: { max_turns: 40 } }));
});

/** Drop the response to the first request for a new run. Returns the idempotency keys of all requests. */
function losesFirstAnswer(): (string | null)[] {
  const keys: (string | null)[] = [];
  server.use(
    http.post(at("/runs"), ({ request }) => {
      keys.push(request.headers.get("Idempotency-Key"));
      return keys.length === 1 ? HttpResponse.error() : HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  return keys;
}

test("a follow-up that is retried after a lost response creates no second run, and an edited one is a new run", async () => {
  const keys = losesFirstAnswer();
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nw" }));
  const { user } = renderPage(ADDRESS);
  const form = within(await screen.findByRole("form", { name: "Follow-up question" }));
  const ask = async (text: string) => {
    await user.type(form.getByRole("textbox"), text);
    await user.click(form.getByRole("button", { name: "Ask" }));
  };
  await ask("And why?");
  await form.findByText("The server cannot be reached");
  await user.click(form.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(form.getByRole("textbox")).toHaveValue(""));
  await ask("And when?");
  await waitFor(() => expect(keys).toHaveLength(3));
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).not.toBe(keys[0]);
});

test("digging deeper again after a lost response creates no second run", async () => {
  const keys = losesFirstAnswer();
  server.use(
    http.get(at("/runs/:id/report"), () => HttpResponse.json(aReport({ status: "partial", reason: "turn_limit" }))),
  );
  serveRun(aRun({ ...DONE, stop_reason: "turn_limit", last_seq: 2, step_marks: "nw" }));
  const { user } = renderPage(ADDRESS);
  const deeper = await screen.findByRole("button", { name: /Dig deeper/ });
  await user.click(deeper);
  await screen.findByText("The server cannot be reached");
  await user.click(deeper);
  await waitFor(() => expect(keys).toHaveLength(2));
  expect(keys[1]).toBe(keys[0]);
});

test("the report appears when the run ends, and the open tab stays open", async () => {
  serveRun(aRun({ last_seq: 2, step_marks: "nn" }));
  const { sources } = renderPage(ADDRESS);
  await screen.findByText("No report yet");
  const ended = aRun({ ...DONE, last_seq: 3, step_marks: "nnw" });
  serveRun(ended, [...steps(1, 2), aStep(3, { kind: "report" })]);
  act(() => {
    sources[0]?.send("step", aStep(3, { kind: "report" }));
    sources[0]?.send("run", ended);
    sources[0]?.send("end", { run_id: RUN_ID });
  });
  expect(await screen.findByRole("heading", { name: "Connections in undici" })).toBeVisible();
  expect(screen.getByRole("tab", { name: /Timeline/ })).toHaveAttribute("aria-selected", "true");
  expect(screen.getByRole("textbox", { name: "Follow-up question" })).toBeVisible();
});

test("a user message is sent, stays in the field on failure, and appears as a step on success", async () => {
  serveRun(aRun({ last_seq: 1, step_marks: "n" }));
  let refuse = true;
  server.use(
    http.post(at("/runs/:id/messages"), async ({ request }) => {
      if (refuse) return HttpResponse.json({ title: "Busy", status: 409, detail: "Try again." }, { status: 409 });
      const { text } = (await request.json()) as { text: string };
      return HttpResponse.json(aStep(2, { kind: "user_message", label: "human", title: text }), { status: 201 });
    }),
  );
  const { user } = renderPage(ADDRESS);
  const box = await screen.findByRole("textbox", { name: "Message to the run" });
  await user.type(box, "prefer the manual{Enter}");
  expect(await screen.findByRole("alert")).toHaveTextContent("Try again.");
  expect(box).toHaveValue("prefer the manual");
  refuse = false;
  await user.click(screen.getByRole("button", { name: "Send" }));
  expect(await screen.findByText("prefer the manual")).toBeVisible();
  expect(box).toHaveValue("");
});

test("j and k select steps, and o opens one with its payload", async () => {
  serveRun(aRun({ ...DONE, last_seq: 3, step_marks: "nns" }));
  server.use(
    http.get(at("/runs/:id/steps/:seq"), ({ params }) =>
      HttpResponse.json({ ...aStep(Number(params.seq)), payload: { args: { query: "pooling <b>" }, empty: null } }),
    ),
  );
  const { user, router } = renderPage(`${ADDRESS}?tab=timeline`);
  await screen.findByText("Step number 2");
  await user.keyboard("jj");
  await waitFor(() => expect(router.state.location.search).toMatchObject({ step: 2 }));
  await user.keyboard("k");
  await waitFor(() => expect(router.state.location.search).toMatchObject({ step: 1 }));
  await user.keyboard("o");
  expect(await screen.findByText("pooling <b>")).toBeVisible();
});

test("an open step can be forked, and the web UI opens the fork", async () => {
  const fork = "01980000-0000-7000-8000-0000000000ff";
  serveRun(aRun({ ...DONE, last_seq: 3, step_marks: "nns" }));
  let sent: unknown;
  server.use(
    http.get(at("/runs/:id/steps/:seq"), () => HttpResponse.json({ ...aStep(2), payload: {} })),
    http.post(at("/runs/:id/fork"), async ({ request }) => {
      sent = await request.json();
      return HttpResponse.json(aRun({ id: fork, forked_from_id: RUN_ID, forked_at_seq: 2 }), { status: 201 });
    }),
  );
  const { user, router } = renderPage(`${ADDRESS}?tab=timeline`);
  await user.click(await screen.findByText("Step number 2"));
  await user.click(await screen.findByRole("button", { name: "Fork from here…" }));
  await user.click(await screen.findByRole("button", { name: "Create the fork" }));
  await waitFor(() => expect(router.state.location.pathname).toBe(`/runs/${fork}`));
  expect(sent).toMatchObject({ at_seq: 2 });
});

test("a fork links to the step and run that it started from", async () => {
  serveRun(aRun({ forked_from_id: "01980000-0000-7000-8000-0000000000ff", forked_at_seq: 7 }));
  renderPage(ADDRESS);
  const link = await screen.findByRole("link", { name: "step 7 of another run" });
  expect(link).toHaveAttribute("href", "/runs/01980000-0000-7000-8000-0000000000ff");
});

test("a kind in the legend filters the timeline", async () => {
  serveRun(aRun({ ...DONE, last_seq: 4, step_marks: "nnsv" }));
  const { user } = renderPage(`${ADDRESS}?tab=timeline`);
  await screen.findByText("Step number 4");
  await user.click(screen.getByRole("button", { name: /search and read/ }));
  const panel = screen.getByRole("tabpanel");
  expect(await within(panel).findByText(/1 step of 4 shown/)).toBeVisible();
  expect(within(panel).queryByText("Step number 4")).toBeNull();
});

test("a rating of a sentence names the sentence", async () => {
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "nw" }));
  let sent: unknown;
  server.use(
    http.post(at("/runs/:id/ratings"), async ({ request }) => {
      sent = await request.json();
      return HttpResponse.json({}, { status: 201 });
    }),
  );
  const { user } = renderPage(ADDRESS);
  const menus = await screen.findAllByRole("button", { name: "Rate this sentence" });
  await user.click(menus[1] as HTMLElement);
  await user.click(await screen.findByRole("menuitem", { name: "Wrong" }));
  await waitFor(() => expect(sent).toEqual({ sentence_id: "s2", value: -1, correction: "", version: 1 }));
});

test("a run that does not exist is reported as missing", async () => {
  server.use(
    http.get(at("/runs/:id"), () =>
      HttpResponse.json({ title: "No such run", status: 404, detail: "It may have been erased." }, { status: 404 }),
    ),
  );
  renderPage(ADDRESS);
  expect(await screen.findByRole("alert")).toHaveTextContent("It may have been erased.");
});

test("the state tab shows the subgoals of a graph that has them", async () => {
  const run = aRun({ ...DONE, graph: "hiper", last_seq: 2, step_marks: "nm" });
  serveRun(run);
  const payload = {
    subgoal_nr: 1,
    subgoal: "Find the founder",
    tool: "search_library",
    finding: "Nothing yet.",
  };
  server.use(
    http.get(at("/runs/:id/whole-steps"), () =>
      HttpResponse.json({ items: [{ ...aStep(2, { kind: "memory" }), payload }], next: null }),
    ),
  );
  const { user } = renderPage(ADDRESS);
  await user.click(await screen.findByRole("tab", { name: "State" }));
  expect(await screen.findByText(/Find the founder/)).toBeVisible();
  expect(screen.getByRole("heading", { name: "Subgoals" })).toBeVisible();
  expect(screen.getByText("Nothing yet.")).toBeVisible();
});

test("report versions show the changes of a turn", async () => {
  serveRun(aRun({ ...DONE, graph: "iterresearch", last_seq: 4, step_marks: "nnnn" }));
  const versions = [2, 4].map((seq) => aStep(seq, { kind: "note", label: "report" }));
  server.use(
    http.get(at("/runs/:id/steps"), () => HttpResponse.json({ items: versions, next: null })),
    http.get(at("/runs/:id/steps/:seq"), ({ params }) => {
      const report = params.seq === "4" ? "It was built in 1823." : "It was built in 1811.";
      return HttpResponse.json({ ...aStep(Number(params.seq)), payload: { report } });
    }),
  );
  renderPage(`${ADDRESS}?tab=state`);
  expect((await screen.findByText("1823")).tagName).toBe("INS");
  expect(screen.getByText("1811").tagName).toBe("DEL");
});

test("the tokens of a run are shown with loss mask and log-probability", async () => {
  serveRun(aRun({ ...DONE, last_seq: 2, step_marks: "np" }));
  server.use(http.get(at("/runs/:id/trajectory"), () => HttpResponse.json(aTrajectory())));
  const { user } = renderPage(`${ADDRESS}?tab=tokens`);
  await user.click(await screen.findByRole("button", { name: "Table" }));
  const rows = within(screen.getByRole("table")).getAllByRole("row");
  expect(rows[1]).toHaveTextContent(/7.*alpha.*yes.*-0\.0100/);
  expect(screen.getByText(/small@1/)).toBeVisible();
  expect(screen.getByText(/root/)).toBeVisible();
});
