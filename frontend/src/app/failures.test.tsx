/** What the web UI shows where something could not be fetched: the failure, and never an empty answer in its place. */

import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { makeQueryClient } from "@/app/providers";
import { aJob, aReport, aRun, aStep, aVersion, JOB_ID, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const ADDRESS = `/runs/${RUN_ID}`;
const ENDED = aRun({ status: "done", stop_reason: "answered", ended_at: "2026-03-01T10:01:00Z", marks: "npsmw" });

const refuses = (path: string) => server.use(http.get(at(path), () => problem(422, `No answer for ${path}`)));

test("a report that could not be fetched is never shown as a run without one", async () => {
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

test("sources of a report that could not be fetched are not none", async () => {
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(ENDED)));
  refuses("/runs/:id/report");
  renderPage(`${ADDRESS}?tab=sources`);
  const cited = within(await screen.findByRole("region", { name: "Cited" }));
  expect((await cited.findAllByText("No answer for /runs/:id/report"))[0]).toBeVisible();
  expect(cited.queryByText(/Nothing is cited/)).toBeNull();
});

test("steps that could not be fetched say why above their rows, and are asked for again", async () => {
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ last_seq: 3, marks: "nps" }))));
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

test("evaluations that could not be fetched are not read as none", async () => {
  server.use(http.get(at("/policies"), () => HttpResponse.json({ items: [aVersion()], next: null })));
  refuses("/evaluations");
  renderPage("/training?policy=planner");
  expect((await screen.findAllByText("No answer for /evaluations"))[0]).toBeVisible();
  expect(screen.queryByText(/Not evaluated/)).toBeNull();
});

test("figures that could not be fetched are not read as not measured", async () => {
  server.use(http.get(at("/training-jobs/:id"), () => HttpResponse.json(aJob())));
  refuses("/training-jobs/:id/metrics");
  renderPage(`/training?job=${JOB_ID}`);
  expect((await screen.findAllByText("No answer for /training-jobs/:id/metrics"))[0]).toBeVisible();
  expect(screen.queryByText("not measured")).toBeNull();
  expect(screen.queryByText(/No group has been looked at/)).toBeNull();
});

test("collections that could not be fetched are said, and the question can be asked all the same", async () => {
  refuses("/library/collections");
  renderPage("/");
  const form = within(await screen.findByRole("form", { name: "New question" }));
  expect((await form.findAllByText("No answer for /library/collections"))[0]).toBeVisible();
  expect(form.getByRole("button", { name: "Ask" })).toBeEnabled();
});

test("a chosen engine waits for the list of graphs, and no question is asked without it", async () => {
  const asked: { engines: Record<string, unknown> }[] = [];
  let arrive: () => void = () => undefined;
  const late = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  server.use(
    http.get(at("/graphs"), async () => {
      await late;
      return HttpResponse.json([
        { name: "agentflow", title: "AgentFlow", description: "", version: "1", roles: ["planner"], diagram: "" },
      ]);
    }),
    http.post(at("/runs"), async ({ request }) => {
      asked.push((await request.json()) as { engines: Record<string, unknown> });
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "How does pooling work?");
  await user.click(screen.getByRole("button", { name: "Limits and engine" }));
  await user.type(screen.getByRole("combobox", { name: "Answered by" }), "litellm:openai/m");
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect(asked).toEqual([]);
  arrive();
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]?.engines).toMatchObject({ planner: { engine: "litellm", model: "openai/m" } });
});

test("where the list of graphs does not come, the chosen engine is not dropped: nothing is asked, and that is said", async () => {
  let asked = 0;
  refuses("/graphs");
  server.use(
    http.post(at("/runs"), () => {
      asked += 1;
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "How does pooling work?");
  await user.click(screen.getByRole("button", { name: "Limits and engine" }));
  await user.type(screen.getByRole("combobox", { name: "Answered by" }), "litellm:openai/m");
  await user.click(screen.getByRole("button", { name: "Ask" }));
  expect((await screen.findAllByText("No answer for /graphs")).length).toBeGreaterThan(0);
  expect(asked).toBe(0);
});

test("while the server is away a banner says so, and it leaves by itself when what was asked for has come", async () => {
  let away = true;
  const gone = () => (away ? HttpResponse.error() : undefined);
  server.use(
    http.get(at("/health/ready"), () => gone() ?? HttpResponse.json({ status: "ok", parts: {} })),
    http.get(at("/runs"), () => gone() ?? HttpResponse.json({ items: [ENDED], next: null })),
  );
  renderPage("/");
  expect(await screen.findByText("The server cannot be reached.")).toBeVisible();
  expect(screen.queryByText("Getting started")).toBeNull();
  away = false;
  await waitFor(() => expect(screen.queryByText("The server cannot be reached.")).toBeNull(), { timeout: 20_000 });
  expect(await screen.findByText(ENDED.question)).toBeVisible();
});

/** A client that makes its attempts without a pause between them. */
function impatientClient() {
  const client = makeQueryClient();
  client.setDefaultOptions({ queries: { ...client.getDefaultOptions().queries, retryDelay: 0 } });
  return client;
}

test("a failure that outlasts the retries while the server is there says that what is shown may be out of date", async () => {
  let failing = false;
  const held = { items: [ENDED], next: null };
  server.use(http.get(at("/runs"), () => (failing ? problem(502, "Bad gateway") : HttpResponse.json(held))));
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

test("while the banner says that the server is away, what was loaded before has no note of its own", async () => {
  let away = false;
  const gone = () => (away ? HttpResponse.error() : undefined);
  server.use(
    http.get(at("/health/ready"), () => gone() ?? HttpResponse.json({ status: "ok", parts: {} })),
    http.get(at("/runs"), () => gone() ?? HttpResponse.json({ items: [ENDED], next: null })),
  );
  const client = impatientClient();
  renderPage("/", client);
  const runs = within(await screen.findByRole("region", { name: "Runs" }));
  await runs.findByText(ENDED.question);
  away = true;
  act(() => void client.invalidateQueries({ queryKey: ["runs"] }));
  expect(await screen.findByText("The server cannot be reached.")).toBeVisible();
  await waitFor(() => expect(client.getQueryState(["runs", ""])?.status).toBe("error"));
  await waitFor(() => expect(runs.queryByRole("alert")).toBeNull());
  expect(runs.getByText(ENDED.question)).toBeVisible();
});

test("a database that is away is told from a server that is", async () => {
  const down = () => HttpResponse.json({ status: "down", parts: {} }, { status: 503 });
  server.use(
    http.get(at("/health/ready"), down),
    http.get(at("/runs"), () => problem(503, "Postgres did not answer.")),
  );
  renderPage("/");
  expect(await screen.findByText("The server answers, but its database does not.")).toBeVisible();
});

test("a view that throws is replaced by itself, and the rest of the page goes on", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  // Marks that are no text: an answer that no type foresaw.
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json({ ...ENDED, marks: 7 })));
  const { user } = renderPage(ADDRESS);
  expect(await screen.findByText("Something in this view went wrong")).toBeVisible();
  expect(screen.getByRole("button", { name: "Reload the page" })).toBeVisible();
  await user.click(screen.getByRole("link", { name: "Runs" }));
  expect(await screen.findByRole("heading", { name: "What should be found out?" })).toBeVisible();
});

test("a lost stream raises the suspicion, and a server that is there clears it", async () => {
  server.use(http.get(at("/runs/:id"), () => HttpResponse.json(aRun({ marks: "n" }))));
  const looks: string[] = [];
  server.use(
    http.get(at("/health/ready"), () => {
      looks.push("asked");
      return HttpResponse.json({ status: "ok", parts: {} });
    }),
  );
  const { sources } = renderPage(ADDRESS);
  await waitFor(() => expect(sources).toHaveLength(1));
  act(() => sources[0]?.breaks(false));
  await waitFor(() => expect(looks).toEqual(["asked"]));
  expect(screen.queryByText("The server cannot be reached.")).toBeNull();
});

test("what is typed in the settings and cannot be saved is said", async () => {
  renderPage("/");
  fireEvent.click(await screen.findByRole("button", { name: "Settings" }));
  const cap = await screen.findByPlaceholderText("no cap");
  fireEvent.change(cap, { target: { value: "much" } });
  fireEvent.blur(cap);
  expect(screen.getByText(/Not saved/)).toBeVisible();
});
