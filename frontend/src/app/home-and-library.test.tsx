import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { cancelUploads } from "@/shared/upload/upload";
import { aRun, aSource, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

test("a browser without a session sees how to sign in", async () => {
  server.use(http.get(at("/session"), () => problem(401, "Not signed in")));
  renderPage("/");
  expect(await screen.findByText("offing login")).toBeVisible();
  expect(screen.queryByRole("navigation")).toBeNull();
});

test.each([
  ["used", "This login link has been used or has expired"],
  ["incomplete", "This login link is incomplete"],
  ["unchecked", "This login link could not be checked"],
])("a login link that is %s is explained, with the way to get a new one", async (link, title) => {
  server.use(http.get(at("/session"), () => problem(401, "Not signed in")));
  renderPage(`/sign-in?link=${link}`);
  expect(await screen.findByRole("heading", { name: title })).toBeVisible();
  expect(screen.getByText("offing login")).toBeVisible();
});

test("a used link does not stop a browser that is signed in", async () => {
  const { router } = renderPage("/sign-in?link=used");
  expect(await screen.findByRole("heading", { name: "What do you want to find out?" })).toBeVisible();
  expect(router.state.location.pathname).toBe("/");
});

test("a session that ends while in use leads to the sign-in view", async () => {
  server.use(http.get(at("/runs"), () => problem(401, "Not signed in")));
  renderPage("/");
  server.use(http.get(at("/session"), () => problem(401, "Not signed in")));
  expect(await screen.findByText("offing login")).toBeVisible();
});

test("without runs the home page explains how to start, and its example fills the question", async () => {
  const { user } = renderPage("/");
  const example = await screen.findByRole("button", { name: /more than one benchmark/ });
  await user.click(example);
  expect(screen.getByRole("textbox", { name: "Question" })).toHaveValue(example.textContent);
});

test("asking sends question, budget and scope with an idempotency key, and opens the run", async () => {
  let body: Record<string, unknown> = {};
  let key: string | null = null;
  server.use(
    http.post(at("/runs"), async ({ request }) => {
      key = request.headers.get("Idempotency-Key");
      body = (await request.json()) as Record<string, unknown>;
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user, router } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "How does pooling work?");
  await user.click(screen.getByRole("radio", { name: "Deep" }));
  await user.click(screen.getByRole("button", { name: "Options" }));
  await user.click(await screen.findByRole("button", { name: /undici 41/ }));
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(router.state.location.pathname).toBe(`/runs/${RUN_ID}`));
  expect(body).toMatchObject({
    question: "How does pooling work?",
    budget: { depth: "deep", max_turns: 40 },
    scope: { collections: ["undici"], sources: [] },
  });
  expect(key).toMatch(/^[0-9a-f]{32}$/);
});

test("a retry after a lost response uses the same idempotency key", async () => {
  const keys: (string | null)[] = [];
  server.use(
    http.post(at("/runs"), ({ request }) => {
      keys.push(request.headers.get("Idempotency-Key"));
      return keys.length === 1 ? HttpResponse.error() : HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user, router } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "How does pooling work?");
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await screen.findByText("The server cannot be reached");
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(router.state.location.pathname).toBe(`/runs/${RUN_ID}`));
  expect(keys[0]).toBe(keys[1]);
});

test("a question that is too short is not sent, and the error says why", async () => {
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("button", { name: "Ask" }));
  expect(screen.getByText(/at least three characters/)).toBeVisible();
});

test("budget, scope and attached documents survive a reload, and asking clears them", async () => {
  server.use(
    http.post(at("/library"), () =>
      HttpResponse.json({ files: [{ name: "a.md", outcome: "added", source: aSource(), problem: "" }] }),
    ),
    http.post(at("/runs"), () => HttpResponse.json(aRun(), { status: 201 })),
  );
  const first = renderPage("/");
  await first.user.type(await screen.findByRole("textbox", { name: "Question" }), "What do they say?");
  await first.user.click(screen.getByRole("button", { name: "The web" }));
  await first.user.click(screen.getByRole("button", { name: "Options" }));
  await first.user.type(await screen.findByRole("textbox", { name: "Maximum cost, $" }), "2");
  await first.user.upload(screen.getByLabelText("Add files"), [new File(["a"], "a.md")]);
  await screen.findByText(/Reads only the 1 document/);
  first.unmount();
  cancelUploads();
  const second = renderPage("/");
  expect(await screen.findByText(/Reads only the 1 document/)).toBeVisible();
  expect(screen.getByRole("button", { name: "The web" })).toHaveAttribute("aria-pressed", "true");
  await second.user.click(screen.getByRole("button", { name: "Options" }));
  expect(await screen.findByRole("textbox", { name: "Maximum cost, $" })).toHaveValue("2");
  await second.user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(second.router.state.location.pathname).toBe(`/runs/${RUN_ID}`));
  second.unmount();
  cancelUploads();
  renderPage("/");
  expect(await screen.findByRole("button", { name: "The web" })).toHaveAttribute("aria-pressed", "false");
  expect(screen.queryByText(/Reads only/)).toBeNull();
});

test("a folder is sent with its name", async () => {
  const sent: [unknown, number][] = [];
  server.use(
    http.post(at("/library"), async ({ request }) => {
      const form = await request.formData();
      sent.push([form.get("collection"), form.getAll("files").length]);
      return HttpResponse.json({ files: [] });
    }),
  );
  const { user } = renderPage("/");
  const files = ["papers/a.md", "papers/deep/a.md", "papers/logo.png"].map((path) =>
    Object.defineProperty(new File(["a"], path.split("/").at(-1) ?? ""), "webkitRelativePath", { value: path }),
  );
  await user.upload(await screen.findByLabelText("Add a folder"), files);
  await waitFor(() => expect(sent).toEqual([["papers", 2]]));
});

test("a folder without a readable document is reported", async () => {
  const { user } = renderPage("/");
  const picture = Object.defineProperty(new File(["a"], "a.png"), "webkitRelativePath", { value: "pictures/a.png" });
  await user.upload(await screen.findByLabelText("Add a folder"), [picture]);
  expect(await screen.findByText(/None of the added files can be read/)).toBeVisible();
});

test("a draft survives a reload", async () => {
  const first = renderPage("/");
  await first.user.type(await screen.findByRole("textbox", { name: "Question" }), "Half a quest");
  first.unmount();
  renderPage("/");
  expect(await screen.findByRole("textbox", { name: "Question" })).toHaveValue("Half a quest");
});

test("attached documents are uploaded first, each with its outcome, and the run reads only them", async () => {
  let scope: unknown;
  server.use(
    http.post(at("/library"), () =>
      HttpResponse.json({
        files: [
          { name: "a.md", outcome: "added", source: aSource(), problem: "" },
          { name: "b.bin", outcome: "rejected", source: null, problem: "Upload PDF, HTML, Markdown, text or DOCX." },
        ],
      }),
    ),
    http.post(at("/runs"), async ({ request }) => {
      scope = ((await request.json()) as { scope: unknown }).scope;
      return HttpResponse.json(aRun(), { status: 201 });
    }),
  );
  const { user } = renderPage("/");
  await user.type(await screen.findByRole("textbox", { name: "Question" }), "What do they say?");
  await user.upload(screen.getByLabelText("Add files"), [new File(["a"], "a.md"), new File(["b"], "b.md")]);
  expect(await screen.findByText("Upload PDF, HTML, Markdown, text or DOCX.")).toBeVisible();
  expect(screen.getByText(/Reads only the 1 document/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Ask" }));
  await waitFor(() => expect(scope).toEqual({ ...aRun().scope, sources: [aSource().id] }));
});

test("the home page lists the latest runs with their minimaps in one request, and can search them", async () => {
  let details = 0;
  const searches: (string | null)[] = [];
  server.use(
    http.get(at("/runs"), ({ request }) => {
      searches.push(new URL(request.url).searchParams.get("q"));
      const run = aRun({ status: "done", stop_reason: "turn_limit", minimap: "npsmw", last_seq: 5 });
      return HttpResponse.json({ items: [run], next: "more" });
    }),
    http.get(at("/runs/:id"), () => {
      details += 1;
      return HttpResponse.json(aRun());
    }),
  );
  const { user } = renderPage("/");
  expect(await screen.findByText("Partial answer")).toBeVisible();
  expect(await screen.findByRole("img", { name: "5 steps" })).toBeInTheDocument();
  await user.type(screen.getByRole("searchbox", { name: "Search runs" }), "pool");
  await waitFor(() => expect(searches).toContain("pool"));
  expect(await screen.findByRole("link", { name: "All runs" })).toHaveAttribute("href", "/runs?q=pool");
  expect(details).toBe(0);
});

test("erasing asks for confirmation and then shows what was removed", async () => {
  let erased = 0;
  server.use(
    http.delete(at("/library/sources/:id"), () => {
      erased += 1;
      return HttpResponse.json({ sources: 1, snapshots: 1, passages: 38, steps: 12 });
    }),
  );
  const { user } = renderPage("/library");
  await user.click(await screen.findByRole("button", { name: "Erase undici: Client" }));
  const dialog = screen.getByRole("dialog", { name: /Erase undici: Client/ });
  expect(erased).toBe(0);
  await user.click(within(dialog).getByRole("button", { name: "Erase" }));
  expect(await screen.findByText(/1 source, 1 stored file, 38 passages, copies in 12 steps of runs/)).toBeVisible();
});

test("a search of the library finds names and passages", async () => {
  server.use(
    http.get(at("/library/search"), () =>
      HttpResponse.json({
        items: [
          {
            text_id: "a",
            source_id: "s",
            title: "undici: Pool",
            heading: "",
            start: 0,
            end: 9,
            text: "A pool of clients",
            marks: [],
            score: 1,
          },
        ],
      }),
    ),
  );
  const { user } = renderPage("/library");
  await user.type(await screen.findByRole("searchbox", { name: "Search the library" }), "pool");
  expect(await screen.findByText("A pool of clients")).toBeVisible();
});

test("a search says what it could not do, and the library how many texts are found by meaning", async () => {
  const notice = "Some documents have no vectors yet, and are found by their words alone.";
  server.use(
    http.get(at("/library/search"), () => HttpResponse.json({ items: [], notices: [notice] })),
    http.get(at("/library/status"), () =>
      HttpResponse.json({
        text_count: 50,
        embedding: { model: "openai/text-embedding-3-small", dimensions: 1536, filled_count: 48, rejected_count: 1 },
        reranks: false,
      }),
    ),
  );
  const { user } = renderPage("/library");
  expect(await screen.findByText(/48 of 50 texts can be found by meaning.*rejects passages of 1 text\./)).toBeVisible();
  await user.type(await screen.findByRole("searchbox", { name: "Search the library" }), "pool");
  expect(await screen.findByText(notice)).toBeVisible();
  expect(await screen.findByText("No passage contains these words.")).toBeVisible();
});

test("the question mark lists the active keyboard shortcuts", async () => {
  const { user } = renderPage("/library");
  await screen.findByText("1 document");
  await user.keyboard("?");
  expect(
    within(screen.getByRole("dialog", { name: "Keyboard shortcuts" })).getByText("Search the library"),
  ).toBeVisible();
});

test("an unknown address shows that the page was not found", async () => {
  renderPage("/nothing/here");
  expect(await screen.findByText("Page not found")).toBeVisible();
});
