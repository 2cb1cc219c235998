import { act, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { afterEach, expect, test } from "vitest";
import { applyLanguage } from "@/shared/language/language";
import { readDraft, storeDraft } from "@/shared/ui/drafts";
import { setTheme } from "@/shared/ui/theme";
import { aRun, RUN_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { usePhone } from "@/testing/screen-size";
import { at, problem, server } from "@/testing/server";

afterEach(() => setTheme("system"));

const LIGHTHOUSE = aRun({ question: "Who built the third Eddystone tower?", status: "done", stop_reason: "answered" });

/** Serve one run, and record what is searched for. */
function serveRuns(): string[] {
  const searches: string[] = [];
  server.use(
    http.get(at("/runs"), ({ request }) => {
      const q = new URL(request.url).searchParams.get("q") ?? "";
      searches.push(q);
      return HttpResponse.json({ items: LIGHTHOUSE.question.includes(q) ? [LIGHTHOUSE] : [], next: null });
    }),
    http.get(at("/runs/:id"), () => HttpResponse.json(LIGHTHOUSE)),
  );
  return searches;
}

test("the navigation leads to each screen and marks the current one", async () => {
  serveRuns();
  const { user, router } = renderPage("/library");
  const nav = within(await screen.findByRole("navigation", { name: "Main" }));
  expect(nav.getAllByRole("link").map(({ textContent }) => textContent)).toEqual([
    "Ask",
    "Runs",
    "Library",
    "Training",
    "Settings",
  ]);
  expect(nav.getByRole("link", { current: "page" })).toHaveTextContent("Library");
  await user.click(nav.getByRole("link", { name: "Runs" }));
  expect(await screen.findByRole("heading", { level: 1, name: "Runs" })).toBeVisible();
  await user.click(await screen.findByRole("link", { name: new RegExp(LIGHTHOUSE.question.slice(0, 20)) }));
  expect(await screen.findByRole("heading", { level: 1, name: LIGHTHOUSE.question })).toBeVisible();
  expect(router.state.location.pathname).toBe(`/runs/${RUN_ID}`);
  expect(nav.getByRole("link", { current: "page" })).toHaveTextContent("Runs");
});

test("the settings, the form and both lists of runs keep their own code after each other", async () => {
  serveRuns();
  const { user } = renderPage("/");
  expect(await screen.findByText(LIGHTHOUSE.question)).toBeVisible();
  await user.click(screen.getByRole("link", { name: "Runs" }));
  expect(await screen.findByRole("heading", { level: 1, name: "Runs" })).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Account" }));
  expect(await screen.findByRole("button", { name: "Sign out" })).toBeVisible();
});

test("g and a letter open a screen", async () => {
  const { user, router } = renderPage("/library");
  await screen.findByRole("heading", { name: "Library" });
  await user.keyboard("gj");
  await waitFor(() => expect(router.state.location.pathname).toBe("/training"));
  await user.keyboard("gh");
  await waitFor(() => expect(router.state.location.pathname).toBe("/"));
});

test("on a phone the navigation folds away and closes when a screen is opened", async () => {
  usePhone();
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("button", { name: "Open the navigation" }));
  const sheet = within(screen.getByRole("dialog", { name: "Offing" }));
  await user.click(sheet.getByRole("link", { name: "Library" }));
  expect(await screen.findByRole("heading", { name: "Library" })).toBeVisible();
  expect(screen.queryByRole("dialog", { name: "Offing" })).toBeNull();
});

test("Back leads through the tabs of a run", async () => {
  serveRuns();
  const { user, router } = renderPage(`/runs/${RUN_ID}?tab=report`);
  await user.click(await screen.findByRole("tab", { name: "Sources" }));
  await user.click(await screen.findByRole("tab", { name: "Timeline" }));
  expect(await screen.findByRole("tab", { name: "Timeline", selected: true })).toBeVisible();
  router.history.back();
  expect(await screen.findByRole("tab", { name: "Sources", selected: true })).toBeVisible();
  router.history.back();
  expect(await screen.findByRole("tab", { name: /Report/, selected: true })).toBeVisible();
});

test.each([
  ["/runs", "Search runs"],
  ["/library", "Search the library"],
])("the address of %s holds what is searched for", async (path, name) => {
  const searches = serveRuns();
  const { user, router } = renderPage(`${path}?q=pool`);
  const field = await screen.findByRole("searchbox", { name });
  expect(field).toHaveValue("pool");
  await user.clear(field);
  await user.type(field, "tower");
  await waitFor(() => expect(router.state.location.search).toEqual({ q: "tower" }));
  if (path === "/runs") await waitFor(() => expect(searches).toEqual(expect.arrayContaining(["pool", "tower"])));
});

test("a question in the address fills the form and is not sent", async () => {
  const { router } = renderPage("/?ask=How%20do%20tides%20work%3F");
  await waitFor(() => expect(screen.getByRole("textbox", { name: "Question" })).toHaveValue("How do tides work?"));
  expect(router.state.location.search).toEqual({});
  expect(screen.queryByText("The question in the form was replaced.")).toBeNull();
});

test("Ctrl+K opens the palette, and typing part of a question finds its run", async () => {
  serveRuns();
  const { user, router } = renderPage("/library");
  await screen.findByRole("heading", { name: "Library" });
  await user.keyboard("{Control>}k{/Control}");
  const field = await screen.findByRole("combobox", { name: /Find a screen or a run/ });
  expect(field).toHaveFocus();
  await user.type(field, "Eddystone");
  const option = await screen.findByRole("option", { name: /third Eddystone tower/ });
  expect(option).toHaveAttribute("aria-selected", "true");
  expect(field).toHaveAttribute("aria-activedescendant", option.id);
  await user.keyboard("{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe(`/runs/${RUN_ID}`));
  expect(screen.queryByRole("combobox", { name: /Find a screen or a run/ })).toBeNull();
});

test("a new question in the palette is asked at once, and Enter does not open a run of the last search", async () => {
  serveRuns();
  const { user, router } = renderPage("/library");
  await user.click(await screen.findByRole("button", { name: "Find" }));
  await screen.findByRole("option", { name: /third Eddystone tower/ });
  await user.type(screen.getByRole("combobox", { name: /Find a screen/ }), "What is a tide?{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/"));
  expect(await screen.findByRole("textbox", { name: "Question" })).toHaveValue("What is a tide?");
});

test("arrow keys of the palette choose a screen, and Ctrl+K closes it again", async () => {
  const { user, router } = renderPage("/library");
  await user.click(await screen.findByRole("button", { name: "Find" }));
  await screen.findByRole("option", { name: /New question/, selected: true });
  await user.keyboard("{ArrowUp}");
  expect(screen.getByRole("option", { name: /Change language/, selected: true })).toBeVisible();
  await user.keyboard("{ArrowDown>6/}{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/settings"));
  await user.keyboard("{Meta>}k{/Meta}");
  await screen.findByRole("listbox", { name: "Matches" });
  await user.keyboard("{Meta>}k{/Meta}");
  expect(screen.queryByRole("listbox", { name: "Matches" })).toBeNull();
});

test("the palette changes the theme, which the navigation shows", async () => {
  const { user } = renderPage("/library");
  await user.click(await screen.findByRole("button", { name: "Find" }));
  await user.type(await screen.findByRole("combobox", { name: /Find a screen/ }), "theme{Enter}");
  expect(document.documentElement.dataset.theme).toBe("light");
  expect(screen.getByRole("button", { name: "Theme: light. Change theme" })).toBeVisible();
});

test.each([
  ["two runs", "/runs/compare", {}],
  ["wait you", "/runs", { state: "waiting" }],
  ["settings spending", "/settings/spending", {}],
  ["who can read", "/settings/share-links", {}],
])("the palette finds the action for “%s”", async (words, path, search) => {
  const { user, router } = renderPage("/library");
  await user.click(await screen.findByRole("button", { name: "Find" }));
  await user.type(await screen.findByRole("combobox", { name: /Find a screen/ }), `${words}{Enter}`);
  await waitFor(() => expect(router.state.location.pathname).toBe(path));
  expect(router.state.location.search).toEqual(search);
});

test("the palette changes the language", async () => {
  const { user } = renderPage("/library");
  await user.click(await screen.findByRole("button", { name: "Find" }));
  await user.type(await screen.findByRole("combobox", { name: /Find a screen/ }), "语言 简体{Enter}");
  expect(await screen.findByRole("heading", { name: "文档库" })).toBeVisible();
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await act(() => applyLanguage("en"));
});

test("the palette puts a new question into the form, and a replaced draft can be restored", async () => {
  storeDraft("question", "An older question");
  const { user } = renderPage("/");
  expect(await screen.findByRole("textbox", { name: "Question" })).toHaveValue("An older question");
  await user.keyboard("{Control>}k{/Control}");
  await user.type(await screen.findByRole("combobox", { name: /Find a screen/ }), "What is a tide?");
  await user.click(await screen.findByRole("option", { name: /Ask “What is a tide\?”/ }));
  await waitFor(() => expect(screen.getByRole("textbox", { name: "Question" })).toHaveValue("What is a tide?"));
  await user.click(screen.getByRole("button", { name: "Undo" }));
  await waitFor(() => expect(screen.getByRole("textbox", { name: "Question" })).toHaveValue("An older question"));
  expect(readDraft("question", "")).toBe("An older question");
});

test("a browser that is not signed in has no palette", async () => {
  server.use(http.get(at("/session"), () => problem(401, "Not signed in")));
  const { user } = renderPage("/");
  await screen.findByText("offing login");
  await user.keyboard("{Control>}k{/Control}");
  expect(screen.queryByRole("combobox")).toBeNull();
});
