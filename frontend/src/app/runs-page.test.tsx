import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { RunChange, RunChangeOf } from "@/shared/api/run-changes";
import type { Run } from "@/shared/api/runs";
import { aRun, SOURCE_ID, THREAD_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const ids = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000010${n}`);

const REJECTION = { type: "", title: "Conflict", status: 409, detail: "The run is a rollout." };

function ended(nth: number, part: Partial<Run> = {}): Run {
  const created = `2026-03-0${4 - nth}T10:00:00Z`;
  const question = ["How do pools grow?", "Why is the sea salt?", "What did the board decide?"][nth] ?? "";
  const id = part.id ?? ids[nth] ?? "";
  const thread_id = `thread-${id}`;
  return aRun({ id, thread_id, status: "done", stop_reason: "answered", question, created_at: created, ...part });
}

/** Serve runs as lists and change them as the API does. Returns the requests of lists and the changes. */
function serveRuns(runs: Run[] = [ended(0), ended(1, { tags: ["sea"] }), ended(2)]) {
  const stored = new Map(runs.map((run) => [run.id, run]));
  const lists: URLSearchParams[] = [];
  const changes: { id: string; body: RunChange }[] = [];
  const requests: RunChangeOf[][] = [];
  const rejected = new Set<string>();
  server.use(
    http.get(at("/runs"), ({ request }) => {
      lists.push(new URL(request.url).searchParams);
      return HttpResponse.json({ items: [...stored.values()].filter((run) => !run.archived_at), next: null });
    }),
    http.get(at("/tags"), () => HttpResponse.json({ items: ["http", "sea"], next: null })),
    http.patch(at("/runs"), async ({ request }) => {
      const sent = (await request.json()) as { changes: RunChangeOf[] };
      requests.push(sent.changes);
      const items = sent.changes.map(({ run_id, ...body }) => {
        changes.push({ id: run_id, body });
        if (rejected.has(run_id)) return { run_id, run: null, problem: REJECTION };
        const was = stored.get(run_id) ?? ended(0);
        const when = "2026-03-05T10:00:00Z";
        const run: Run = {
          ...was,
          given_title: body.title ?? was.given_title,
          tags: body.tags ?? was.tags,
          pinned_at: body.pinned == null ? was.pinned_at : body.pinned ? when : null,
          archived_at: body.archived == null ? was.archived_at : body.archived ? when : null,
        };
        stored.set(run_id, run);
        return { run_id, run, problem: null };
      });
      return HttpResponse.json({ items });
    }),
  );
  return { lists, changes, stored, rejected, requests };
}

async function chooseAction(user: ReturnType<typeof renderPage>["user"], run: string, action: string) {
  await user.click(await screen.findByRole("button", { name: `Actions for “${run}”` }));
  await user.click(await screen.findByRole("menuitem", { name: new RegExp(action) }));
}

test("views and filters are in the address and are sent to the server", async () => {
  const { lists } = serveRuns();
  const { user, router } = renderPage(`/runs?state=failed&tag=sea&from=2026-03-01&until=2026-03-02&cites=${SOURCE_ID}`);
  await screen.findByRole("link", { name: "Why is the sea salt?" });
  const [first] = lists;
  expect(first?.get("status")).toBe("failed");
  expect(first?.get("tag")).toBe("sea");
  expect(first?.get("cites")).toBe(SOURCE_ID);
  expect(Date.parse(first?.get("created_before") ?? "") - Date.parse(first?.get("created_from") ?? "")).toBe(2 * 864e5);
  expect(await screen.findByText("Cites: undici: Client")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Waiting for you" }));
  await waitFor(() => expect(router.state.location.search).toMatchObject({ state: "waiting", tag: "sea" }));
  await waitFor(() => expect(lists.at(-1)?.get("waiting_for_person")).toBe("true"));
  await user.click(screen.getByRole("button", { name: "Remove the filter “Tag: sea”" }));
  await waitFor(() => expect(lists.at(-1)?.get("tag")).toBeNull());
  router.history.back();
  await waitFor(() => expect(router.state.location.search).toMatchObject({ tag: "sea" }));
});

test("a search marks its words and shows passages of documents beside the first runs", async () => {
  const match = {
    location: "report" as const,
    excerpt: "海 Rivers carry salt.",
    marks: [{ start: 2, end: 8 }],
    question_marks: [{ start: 11, end: 14 }],
    title_marks: [],
  };
  serveRuns([
    ended(1, { match }),
    ...Array.from({ length: 9 }, (_, n) => ended(2, { id: `${n}`, match: { ...match, question_marks: [] } })),
  ]);
  const hit = {
    text_id: "t",
    source_id: SOURCE_ID,
    title: "Salt",
    heading: "",
    start: 0,
    end: 4,
    text: "Salt.",
    marks: [{ start: 0, end: 4 }],
    score: 1,
  };
  server.use(http.get(at("/library/search"), () => HttpResponse.json({ items: [hit], notices: [] })));
  const { user, router } = renderPage("/runs?q=river");
  expect((await screen.findAllByText("Rivers", { selector: "mark" })).length).toBeGreaterThan(0);
  expect(screen.getByText("sea", { selector: "mark" })).toBeVisible();
  const passages = await screen.findByRole("region", { name: "Passages in documents" });
  expect(await within(passages).findByRole("link", { name: "Salt" })).toBeVisible();
  expect(within(passages).getByText("Salt", { selector: "mark" })).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Show all runs that match" }));
  await waitFor(() => expect(screen.queryByRole("button", { name: "Show all runs that match" })).toBeNull());
  expect(router.state.location.search).toMatchObject({ q: "river", all: true });
  expect(screen.queryByRole("region", { name: "Passages in documents" })).toBeNull();
});

test("a run is archived from its menu, leaves the list, and a message brings it back", async () => {
  const { changes, requests } = serveRuns();
  const { user } = renderPage("/runs");
  await chooseAction(user, "Why is the sea salt?", "Archive");
  await waitFor(() => expect(screen.queryByRole("link", { name: "Why is the sea salt?" })).toBeNull());
  await user.click(await screen.findByRole("button", { name: "Undo" }));
  expect(await screen.findByRole("link", { name: "Why is the sea salt?" })).toBeVisible();
  expect(changes.map(({ body }) => body)).toEqual([{ archived: true }, { archived: false }]);
  expect(requests).toHaveLength(2);
});

test("the keyboard moves, selects, pins and renames, and several runs are tagged at once", async () => {
  const { changes, requests } = serveRuns();
  const { user } = renderPage("/runs");
  await screen.findByRole("link", { name: "How do pools grow?" });
  await user.keyboard("{ArrowDown}{ArrowDown}");
  await waitFor(() => expect(screen.getByRole("link", { name: "Why is the sea salt?" })).toHaveFocus());
  await user.keyboard("p");
  expect(await screen.findByText("The run is pinned.")).toBeVisible();
  await user.keyboard("r");
  const title = await screen.findByRole("textbox", { name: "Title of the run" });
  await user.clear(title);
  await user.type(title, "Salt{Enter}");
  expect(await screen.findByRole("link", { name: "Salt" })).toBeVisible();
  await user.keyboard("x");
  await user.click(screen.getByRole("checkbox", { name: "Select “How do pools grow?”" }));
  const bar = await screen.findByRole("region", { name: "Selected runs" });
  expect(within(bar).getByRole("link", { name: "Compare" })).toHaveAttribute(
    "href",
    expect.stringContaining(ids[0] ?? ""),
  );
  await user.click(within(bar).getByRole("button", { name: "Tags…" }));
  expect(screen.getByText("1 of 2")).toBeVisible();
  await user.type(screen.getByRole("combobox", { name: "Add a tag" }), "water");
  await user.click(screen.getByRole("button", { name: "Save the tags" }));
  await waitFor(() => expect(changes).toHaveLength(4));
  expect(requests.map((one) => one.length)).toEqual([1, 1, 2]);
  expect(changes.slice(2).map(({ body }) => body.tags)).toEqual(expect.arrayContaining([["water"], ["sea", "water"]]));
});

test.each(["of one run", "of selected runs"])(
  "keys in the dialog of the tags %s never reach the list behind it",
  async (which) => {
    const { changes } = serveRuns();
    const { user } = renderPage("/runs");
    const name = "Why is the sea salt?";
    if (which === "of one run") await chooseAction(user, name, "Tags…");
    else {
      await user.click(await screen.findByRole("checkbox", { name: `Select “${name}”` }));
      await user.click(await screen.findByRole("button", { name: "Tags…" }));
    }
    const field = await screen.findByRole("combobox", { name: "Add a tag" });
    expect(field).toHaveFocus();
    await user.tab({ shift: true });
    expect(screen.getByRole("button", { name: "Remove the tag sea" })).toHaveFocus();
    await user.keyboard(" ");
    expect(screen.queryByRole("button", { name: "Remove the tag sea" })).toBeNull();
    expect(field).toHaveFocus();
    await user.keyboard("pe");
    expect(field).toHaveValue("pe");
    field.blur();
    expect(document.body).toHaveFocus();
    await user.keyboard("pe?{Control>}k{/Control}");
    expect(changes).toEqual([]);
    expect(screen.getAllByRole("dialog")).toHaveLength(1);
    expect(screen.getByRole("link", { name, hidden: true })).toBeInTheDocument();
  },
);

test("a change that the server rejects is shown, and those that succeeded stay", async () => {
  serveRuns().rejected.add(ids[2] ?? "");
  const { user } = renderPage("/runs");
  for (const name of ["How do pools grow?", "What did the board decide?"]) {
    await user.click(await screen.findByRole("checkbox", { name: `Select “${name}”` }));
  }
  const bar = await screen.findByRole("region", { name: "Selected runs" });
  await user.click(within(bar).getByRole("button", { name: "Pin" }));
  expect(await screen.findByText("1 of 2 runs stay as they were")).toBeVisible();
  expect(screen.getByText("The run is a rollout.")).toBeVisible();
  expect(screen.getAllByText("Pinned", { selector: "span" })).toHaveLength(1);
});

test("a deletion offers the later runs of the thread and shows the server's reasons against it", async () => {
  const thread_id = THREAD_ID;
  const { stored } = serveRuns([ended(0, { thread_id }), ended(1, { thread_id }), ended(2)]);
  const asked: { run_ids: string[]; later_runs: boolean }[] = [];
  server.use(
    http.get(at(`/threads/${THREAD_ID}`), () =>
      HttpResponse.json({ id: THREAD_ID, title: "", created_at: "", runs: [ended(1), ended(0)] }),
    ),
    http.post(at("/runs/deletions"), async ({ request }) => {
      const sent = (await request.json()) as { run_ids: string[]; later_runs: boolean };
      asked.push(sent);
      const [run_id] = sent.run_ids;
      const detail = "A later run of its thread builds on it.";
      if (!sent.later_runs) {
        return HttpResponse.json({ items: [{ run_id, deletion: null, problem: { ...REJECTION, detail } }] });
      }
      for (const id of ids.slice(0, 2)) stored.delete(id);
      const deletion = { run_ids: [ids[1], ids[0]], child_runs: 0, kept_fork_ids: [] };
      return HttpResponse.json({ items: [{ run_id, deletion, problem: null }] });
    }),
  );
  const { user } = renderPage("/runs?state=ended");
  await chooseAction(user, "Why is the sea salt?", "Delete");
  const dialog = await screen.findByRole("dialog", { name: "Delete this run?" });
  expect(within(dialog).getByText(/its report with all ratings/)).toBeVisible();
  expect(within(dialog).getByText("Links that share its report stop working.")).toBeVisible();
  await user.click(within(dialog).getByRole("button", { name: "Delete permanently" }));
  expect(await within(dialog).findByText("A later run of its thread builds on it.")).toBeVisible();
  await user.click(within(dialog).getByRole("checkbox", { name: "Also delete the later run of its thread" }));
  await user.click(within(dialog).getByRole("button", { name: "Delete permanently" }));
  expect(await screen.findByText("2 runs are deleted.")).toBeVisible();
  expect(asked).toEqual([false, true].map((later_runs) => ({ run_ids: [ids[1]], later_runs })));
  expect(screen.queryByRole("link", { name: "How do pools grow?" })).toBeNull();
  expect(screen.getByRole("link", { name: "What did the board decide?" })).toBeVisible();
});

test("of ten thousand runs only those in view are rendered, and pages follow as one scrolls", async () => {
  const all = Array.from({ length: 10_000 }, (_, n) => ended(0, { id: `run-${n}`, question: `Question ${n}?` }));
  let requests = 0;
  server.use(
    http.get(at("/runs"), ({ request }) => {
      requests += 1;
      const query = new URL(request.url).searchParams;
      const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit"))];
      return HttpResponse.json({ items: all.slice(from, from + limit), next: String(from + limit) });
    }),
  );
  renderPage("/runs");
  await screen.findByRole("link", { name: "Question 0?" });
  expect(screen.getAllByRole("listitem").length).toBeLessThan(40);
  expect(requests).toBeLessThan(5);
});

test("pinned runs stand first, and a run that is pinned goes to them at once", async () => {
  const pinned_at = "2026-03-05T10:00:00Z";
  const lists: URLSearchParams[] = [];
  const { stored } = serveRuns([ended(0), ended(1), ended(2, { pinned_at })]);
  server.use(
    http.get(at("/runs"), ({ request }) => {
      lists.push(new URL(request.url).searchParams);
      const all = [...stored.values()];
      return HttpResponse.json({
        pinned: all.filter((run) => run.pinned_at),
        has_more_pinned: true,
        items: all.filter((run) => !run.pinned_at),
        next: null,
      });
    }),
  );
  const { user, router } = renderPage("/runs");
  const names = () => screen.getAllByRole("link", { name: /\?$/ }).map((link) => link.textContent);
  await screen.findByRole("heading", { name: "Pinned" });
  expect(lists[0]?.get("pinned_first")).toBe("5");
  expect(names()).toEqual(["What did the board decide?", "How do pools grow?", "Why is the sea salt?"]);
  await chooseAction(user, "Why is the sea salt?", "Pin");
  await waitFor(() => expect(names()[0]).toBe("Why is the sea salt?"));
  await user.click(screen.getByRole("button", { name: "Show all pinned runs" }));
  await waitFor(() => expect(router.state.location.search).toEqual({ pinned: true }));
  await waitFor(() => expect(lists.at(-1)?.get("pinned_first")).toBeNull());
});

test("the order is in the address, and a search has its own orders", async () => {
  const { lists } = serveRuns();
  const { user, router } = renderPage("/runs");
  const order = await screen.findByRole("combobox", { name: "Order" });
  expect(within(order).queryByRole("option", { name: "Best match first" })).toBeNull();
  await user.selectOptions(order, "Most expensive first");
  await waitFor(() => expect(router.state.location.search).toEqual({ order: "cost" }));
  await waitFor(() => expect(lists.at(-1)?.get("order")).toBe("cost"));
  expect(await screen.findByText("Runs that have not ended are left out.")).toBeVisible();
  await user.type(screen.getByRole("searchbox", { name: "Search runs" }), "sea");
  await waitFor(() => expect(router.state.location.search).toEqual({ q: "sea" }));
  expect(order).toHaveValue("best");
  await user.selectOptions(order, "Newest first");
  await waitFor(() => expect(router.state.location.search).toEqual({ q: "sea", order: "newest" }));
});

test("views have their numbers of runs, which end at 99+", async () => {
  serveRuns();
  const counts = { waiting_for_person: 2, active: 0, failed: 100, pinned: 0, archived: 7 };
  server.use(http.get(at("/runs/counts"), () => HttpResponse.json(counts)));
  renderPage("/runs");
  expect(await screen.findByRole("button", { name: "Waiting for you 2" })).toBeVisible();
  expect(screen.getByRole("button", { name: "Failed 99+" })).toBeVisible();
  expect(screen.getByRole("button", { name: "Not ended" })).toBeVisible();
});

test("the latest run stands for its thread, and its row opens the earlier ones", async () => {
  const { lists } = serveRuns([ended(0, { thread_runs: 2, thread_id: THREAD_ID }), ended(2)]);
  server.use(
    http.get(at(`/threads/${THREAD_ID}`), () =>
      HttpResponse.json({ id: THREAD_ID, title: "", created_at: "", runs: [ended(1), ended(0)] }),
    ),
  );
  const { user } = renderPage("/runs");
  await user.click(await screen.findByRole("button", { name: "1 earlier question" }));
  const thread = await screen.findByRole("list", { name: "Earlier questions of the thread" });
  expect(within(thread).getByRole("link", { name: "Why is the sea salt?" })).toBeVisible();
  expect(within(thread).queryByRole("link", { name: "How do pools grow?" })).toBeNull();
  expect(lists[0]?.get("latest_of_thread")).toBe("true");
});

test("Back comes to the list as it was left, and a link to a new one", async () => {
  const { lists } = serveRuns();
  const view = () => document.getElementById("view") as HTMLElement;
  const { user, router } = renderPage("/runs");
  await screen.findByRole("link", { name: "Why is the sea salt?" });
  view().scrollTop = 420;
  view().dispatchEvent(new Event("scroll"));
  const before = lists.length;
  await user.click(screen.getByRole("link", { name: "Why is the sea salt?" }));
  await waitFor(() => expect(router.state.location.pathname).not.toBe("/runs"));
  view().scrollTop = 0;
  router.history.back();
  await screen.findByRole("link", { name: "Why is the sea salt?" });
  expect(view().scrollTop).toBe(420);
  expect(lists.slice(before).filter((query) => query.get("limit") === "100")).toEqual([]);
  await user.click(screen.getByRole("link", { name: "Library" }));
  await user.click(screen.getByRole("link", { name: "Runs" }));
  await screen.findByRole("link", { name: "Why is the sea salt?" });
  expect(view().scrollTop).toBe(0);
});

test("without any run the page explains how to begin, and a list that cannot be loaded says so", async () => {
  const first = renderPage("/runs");
  expect(await screen.findByRole("region", { name: "Getting started" })).toBeVisible();
  first.unmount();
  server.use(http.get(at("/runs"), () => problem(500, "Broken")));
  renderPage("/runs?tag=sea");
  expect(await screen.findByText("Broken", { selector: "p" })).toBeVisible();
});
