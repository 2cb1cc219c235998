/** The web UI shows the error when something could not be loaded, and never an empty result in its place. */

import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { createQueryClient } from "@/app/providers";
import { aGraph, aJob, aReport, aRun, aStep, aVersion, JOB_ID, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const ADDRESS = `/runs/${RUN_ID}`;
const ENDED = aRun({ status: "done", stop_reason: "answered", ended_at: "2026-03-01T10:01:00Z", step_marks: "npsmw" });

const refuses = (path: string) => server.use(http.get(at(path), () => problem(422, `No answer for ${path}`)));

test("a report that could not be loaded is never shown as missing", async () => {
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(ENDED)));
  refuses("/runs/:id/report");
  const { user } = renderPage(`${ADDRESS}?tab=report`);
  const panel = within(await screen.findByRole("tabpanel"));
  expect((await panel.findAllByText("No answer for /runs/:id/report"))[0]).toBeVisible();
  expect(screen.queryByText(/No report/)).toBeNull();
  expect(screen.queryByText(/evidence was enough/)).toBeNull();
  server.use(http.get(at("/runs/:id/report"), () => HttpResponse.json(aReport())));
  await user.click(panel.getByRole("button", { name: "Try again" }));
  expect(await panel.findByRole("heading", { name: "Connections in undici" })).toBeVisible();
});

test("sources of a report that could not be loaded are not shown as none", async () => {
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(ENDED)));
  refuses("/runs/:id/report");
  renderPage(`${ADDRESS}?tab=sources`);
  const panel = within(await screen.findByRole("tabpanel"));
  expect((await panel.findAllByText("No answer for /runs/:id/report"))[0]).toBeVisible();
});

test.each([
  ["sources", "/runs/:id/sources", "No sources yet"],
  ["cost", "/runs/:id/usage", "No role was called yet"],
  ["graph", "/runs/:id/nodes", "No node has recorded a call yet."],
])("the view %s that could not be loaded does not look empty", async (tab, route, empty) => {
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(ENDED)));
  refuses(route);
  renderPage(`${ADDRESS}?tab=${tab}`);
  const panel = within(await screen.findByRole("tabpanel"));
  expect((await panel.findAllByText(`No answer for ${route}`))[0]).toBeVisible();
  expect(panel.queryByText(empty)).toBeNull();
});

test("steps that could not be loaded show the error above their rows, and are retried", async () => {
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ last_seq: 3, step_marks: "nps" }))));
  refuses("/runs/:id/steps");
  const { user } = renderPage(`${ADDRESS}?tab=timeline`);
  const panel = within(await screen.findByRole("tabpanel"));
  expect((await panel.findAllByText("No answer for /runs/:id/steps"))[0]).toBeVisible();
  server.use(
    http.get(at("/runs/:id/steps"), () =>
      HttpResponse.json({ items: [aStep(1, { title: "Read what was said" })], next: null }),
    ),
  );
  await user.click(panel.getByRole("button", { name: "Try again" }));
  expect(await panel.findByText("Read what was said")).toBeVisible();
});

test("evaluations that could not be loaded are not shown as none", async () => {
  server.use(http.get(at("/policy-versions"), () => HttpResponse.json({ items: [aVersion()], next: null })));
  refuses("/evaluations");
  renderPage("/training?policy=planner");
  expect((await screen.findAllByText("No answer for /evaluations"))[0]).toBeVisible();
  expect(screen.queryByText(/Not evaluated/)).toBeNull();
});

test("metrics that could not be loaded are not shown as not measured", async () => {
  server.use(http.get(at("/training-jobs/:id"), () => HttpResponse.json(aJob())));
  refuses("/training-jobs/:id/metrics");
  renderPage(`/training?job=${JOB_ID}`);
  expect((await screen.findAllByText("No answer for /training-jobs/:id/metrics"))[0]).toBeVisible();
  expect(screen.queryByText("not measured")).toBeNull();
  expect(screen.queryByText(/No group has been looked at/)).toBeNull();
});

test("collections that could not be loaded are reported, and the question can still be asked", async () => {
  refuses("/library/collections");
  const { user } = renderPage("/");
  const form = within(await screen.findByRole("form", { name: "New question" }));
  await user.click(form.getByRole("button", { name: "Options" }));
  expect((await form.findAllByText("No answer for /library/collections"))[0]).toBeVisible();
  expect(form.getByRole("button", { name: "Ask" })).toBeEnabled();
});

test("a selected engine waits for the list of graphs, and no run is created without it", async () => {
  const requests: { engines: Record<string, unknown> }[] = [];
  let arrive: () => void = () => undefined;
  const late = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  server.use(
    http.get(at("/graphs"), async () => {
      await late;
      return HttpResponse.json([aGraph()]);
    }),
    http.post(at("/runs"), async ({ request }) => {
      requests.push((await request.json()) as { engines: Record<string, unknown> });
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "How does pooling work?");
  await user.click(screen.getByRole("button", { name: "Options" }));
  await user.type(await screen.findByRole("searchbox", { name: "Find a model, or enter one" }), "litellm:openai/m");
  await user.click(screen.getByRole("button", { name: "Use “litellm:openai/m”" }));
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect(requests).toEqual([]);
  arrive();
  await waitFor(() => expect(requests).toHaveLength(1));
  expect(requests[0]?.engines).toMatchObject({ planner: { engine: "litellm", model: "openai/m" } });
});

test("if the list of graphs cannot be loaded, the selected engine is not dropped and no run is created", async () => {
  let requestCount = 0;
  refuses("/graphs");
  server.use(
    http.post(at("/runs"), () => {
      requestCount += 1;
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "How does pooling work?");
  await user.click(screen.getByRole("button", { name: "Options" }));
  await user.type(await screen.findByRole("searchbox", { name: "Find a model, or enter one" }), "litellm:openai/m");
  await user.click(screen.getByRole("button", { name: "Use “litellm:openai/m”" }));
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect((await screen.findAllByText("No answer for /graphs")).length).toBeGreaterThan(0);
  expect(requestCount).toBe(0);
});

test("a banner is shown during an outage and disappears when the server is available again", async () => {
  let isDown = true;
  const fail = () => (isDown ? HttpResponse.error() : undefined);
  server.use(
    http.get(at("/health/ready"), () => fail() ?? HttpResponse.json({ status: "ok", parts: {} })),
    http.get(at("/runs"), () => fail() ?? HttpResponse.json({ items: [ENDED], next: null })),
  );
  renderPage("/");
  expect(await screen.findByText("The server cannot be reached.")).toBeVisible();
  expect(screen.queryByText("Getting started")).toBeNull();
  isDown = false;
  await waitFor(() => expect(screen.queryByText("The server cannot be reached.")).toBeNull(), { timeout: 20_000 });
  expect(await screen.findByText(ENDED.question)).toBeVisible();
});

/** Create a client that retries without a delay. */
function impatientClient() {
  const client = createQueryClient();
  client.setDefaultOptions({ queries: { ...client.getDefaultOptions().queries, retryDelay: 0 } });
  return client;
}

test("an error after all retries of an available server says that the data may be out of date", async () => {
  let failing = false;
  const stored = { items: [ENDED], next: null };
  server.use(http.get(at("/runs"), () => (failing ? problem(502, "Bad gateway") : HttpResponse.json(stored))));
  const client = impatientClient();
  const { user } = renderPage("/", client);
  const runs = within(await screen.findByRole("region", { name: "Runs" }));
  await runs.findByText(ENDED.question);
  failing = true;
  act(() => void client.invalidateQueries({ queryKey: ["runs"] }));
  expect(await runs.findByText(/may be out of date/)).toBeVisible();
  expect(runs.getByText(ENDED.question)).toBeVisible();
  expect(screen.queryByText(/The server answers, but/)).toBeNull();
  failing = false;
  await user.click(runs.getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(runs.queryByText(/may be out of date/)).toBeNull());
});

test("while the banner is shown, loaded data has no error of its own", async () => {
  let isDown = false;
  const fail = () => (isDown ? HttpResponse.error() : undefined);
  server.use(
    http.get(at("/health/ready"), () => fail() ?? HttpResponse.json({ status: "ok", parts: {} })),
    http.get(at("/runs"), () => fail() ?? HttpResponse.json({ items: [ENDED], next: null })),
  );
  const client = impatientClient();
  renderPage("/", client);
  const runs = within(await screen.findByRole("region", { name: "Runs" }));
  await runs.findByText(ENDED.question);
  isDown = true;
  act(() => void client.invalidateQueries({ queryKey: ["runs"] }));
  expect(await screen.findByText("The server cannot be reached.")).toBeVisible();
  await waitFor(() => expect(client.getQueryState(["runs", "", "recent"])?.status).toBe("error"));
  await waitFor(() => expect(runs.queryByRole("alert")).toBeNull());
  expect(runs.getByText(ENDED.question)).toBeVisible();
});

test("an unavailable database is distinguished from an unavailable server", async () => {
  const down = () => HttpResponse.json({ status: "down", parts: {} }, { status: 503 });
  server.use(
    http.get(at("/health/ready"), down),
    http.get(at("/runs"), () => problem(503, "Postgres did not answer.")),
  );
  renderPage("/");
  expect(await screen.findByText("The server responds, but its database does not.")).toBeVisible();
});

test("a view that throws is replaced by an error, and the rest of the page keeps working", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  // Marks that are not a string: a response that the types do not describe.
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json({ ...ENDED, step_marks: 7 })));
  const { user } = renderPage(ADDRESS);
  expect(await screen.findByText("Something went wrong in this view")).toBeVisible();
  expect(screen.getByRole("button", { name: "Reload the page" })).toBeVisible();
  await user.click(screen.getByRole("link", { name: "Ask" }));
  expect(await screen.findByRole("heading", { name: "What do you want to find out?" })).toBeVisible();
});

test("a view that threw can be tried again with fresh data, and its details can be copied", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json({ ...ENDED, step_marks: 7 })));
  const { user } = renderPage(`${ADDRESS}?only=s`);
  const note = within(await screen.findByRole("alert"));
  await user.click(note.getByText("Details for a report"));
  await user.click(note.getByRole("button", { name: "Copy the details" }));
  expect(await note.findByRole("button", { name: "Copied" })).toBeVisible();
  const copied = await navigator.clipboard.readText();
  expect(copied).toContain("TypeError");
  expect(copied).not.toContain("only=s");
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(ENDED)));
  await user.click(note.getByRole("button", { name: "Try again" }));
  expect(await screen.findByRole("heading", { level: 1, name: ENDED.question })).toBeVisible();
});

test("after three seconds a view says what it waits for, and why the last attempt failed", async () => {
  vi.useFakeTimers({ toFake: ["Date", "setInterval", "clearInterval"] });
  server.use(http.get(at("/training-jobs"), () => new Promise<never>(() => undefined)));
  server.use(http.get(at("/policy-versions"), () => problem(500, "The disk is full.")));
  renderPage("/training");
  await screen.findByText("Loading the jobs…");
  expect(screen.queryByText("Waiting for the server to respond.")).toBeNull();
  act(() => void vi.advanceTimersByTime(4_000));
  expect(await screen.findByText("Waiting for the server to respond.")).toBeVisible();
  expect(screen.getByText("The last attempt failed: The disk is full. Trying again.")).toBeVisible();
  vi.useRealTimers();
});

test("a lost stream starts a check of the server, and an available server ends it", async () => {
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ step_marks: "n" }))));
  const looks: string[] = [];
  server.use(
    http.get(at("/health/ready"), () => {
      looks.push("asked");
      return HttpResponse.json({ status: "ok", parts: {} });
    }),
  );
  const { sources } = renderPage(ADDRESS);
  await waitFor(() => expect(sources).toHaveLength(1));
  act(() => sources[0]?.fail(false));
  await waitFor(() => expect(looks).toEqual(["asked"]));
  expect(screen.queryByText("The server cannot be reached.")).toBeNull();
});

test("a setting that cannot be saved is reported", async () => {
  renderPage("/");
  fireEvent.click(await screen.findByRole("button", { name: "Account" }));
  const cap = await screen.findByPlaceholderText("no limit");
  fireEvent.change(cap, { target: { value: "much" } });
  fireEvent.blur(cap);
  expect(screen.getByText(/Not saved/)).toBeVisible();
});
