import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { Run } from "@/shared/api/runs";
import { aRun, SOURCE_ID, THREAD_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

const ids = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000010${n}`);

function ended(nth: number, part: Partial<Run> = {}): Run {
  const created = `2026-03-0${4 - nth}T10:00:00Z`;
  const question = ["How do pools grow?", "Why is the sea salt?", "What did the board decide?"][nth] ?? "";
  return aRun({ id: ids[nth] ?? "", status: "done", stop_reason: "answered", question, created_at: created, ...part });
}

/** Serve runs as lists and change them as the API does. Returns the requests of lists and the changes. */
function serveRuns(runs: Run[] = [ended(0), ended(1, { tags: ["sea"] }), ended(2)]) {
  const stored = new Map(runs.map((run) => [run.id, run]));
  const lists: URLSearchParams[] = [];
  const changes: { id: string; body: Record<string, unknown> }[] = [];
  server.use(
    http.get(at("/runs"), ({ request }) => {
      lists.push(new URL(request.url).searchParams);
      return HttpResponse.json({ items: [...stored.values()].filter((run) => !run.archived_at), next: null });
    }),
    http.get(at("/tags"), () => HttpResponse.json({ items: ["http", "sea"], next: null })),
    http.patch(at("/runs/:id"), async ({ params, request }) => {
      const body = (await request.json()) as { title?: string; tags?: string[]; pinned?: boolean; archived?: boolean };
      const id = String(params.id);
      changes.push({ id, body });
      const was = stored.get(id) ?? ended(0);
      const when = "2026-03-05T10:00:00Z";
      const run: Run = {
        ...was,
        given_title: body.title ?? was.given_title ?? "",
        tags: body.tags ?? was.tags ?? [],
        pinned_at: body.pinned === undefined ? (was.pinned_at ?? null) : body.pinned ? when : null,
        archived_at: body.archived === undefined ? (was.archived_at ?? null) : body.archived ? when : null,
      };
      stored.set(id, run);
      return HttpResponse.json(run);
    }),
  );
  return { lists, changes, stored };
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
  const match = { location: "report" as const, excerpt: "海 Rivers carry salt.", marks: [{ start: 2, end: 8 }] };
  serveRuns([ended(0, { match }), ...Array.from({ length: 9 }, (_, n) => ended(1, { id: `${n}`, match }))]);
  const hit = {
    text_id: "t",
    source_id: SOURCE_ID,
    title: "Salt",
    heading: "",
    start: 0,
    end: 4,
    text: "Salt.",
    score: 1,
  };
  server.use(http.get(at("/library/search"), () => HttpResponse.json({ items: [hit], notices: [] })));
  const { user, router } = renderPage("/runs?q=river");
  expect((await screen.findAllByText("Rivers", { selector: "mark" })).length).toBeGreaterThan(0);
  const passages = await screen.findByRole("region", { name: "Passages in documents" });
  expect(await within(passages).findByRole("link", { name: "Salt" })).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Show all runs that match" }));
  await waitFor(() => expect(screen.queryByRole("button", { name: "Show all runs that match" })).toBeNull());
  expect(router.state.location.search).toMatchObject({ q: "river", all: true });
  expect(screen.queryByRole("region", { name: "Passages in documents" })).toBeNull();
});

test("a run is archived from its menu, leaves the list, and a message brings it back", async () => {
  const { changes } = serveRuns();
  const { user } = renderPage("/runs");
  await chooseAction(user, "Why is the sea salt?", "Archive");
  await waitFor(() => expect(screen.queryByRole("link", { name: "Why is the sea salt?" })).toBeNull());
  await user.click(await screen.findByRole("button", { name: "Undo" }));
  expect(await screen.findByRole("link", { name: "Why is the sea salt?" })).toBeVisible();
  expect(changes.map(({ body }) => body)).toEqual([{ archived: true }, { archived: false }]);
});

test("the keyboard moves, selects, pins and renames, and several runs are tagged at once", async () => {
  const { changes } = serveRuns();
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
  serveRuns();
  server.use(
    http.patch(at(`/runs/${ids[2]}`), () => problem(409, "Conflict", { detail: "The run is a rollout." }), {
      once: true,
    }),
  );
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
  const { stored } = serveRuns();
  const asked: (string | null)[] = [];
  server.use(
    http.get(at(`/threads/${THREAD_ID}`), () =>
      HttpResponse.json({ id: THREAD_ID, title: "", created_at: "", runs: [ended(1), ended(0)] }),
    ),
    http.delete(at(`/runs/${ids[1]}`), ({ request }) => {
      const later = new URL(request.url).searchParams.get("later_runs");
      asked.push(later);
      if (!later) return problem(409, "Conflict", { detail: "A later run of its thread builds on it." });
      for (const id of ids.slice(0, 2)) stored.delete(id);
      return HttpResponse.json({ run_ids: [ids[1], ids[0]], child_runs: 0, kept_fork_ids: [] });
    }),
  );
  const { user } = renderPage("/runs");
  await chooseAction(user, "Why is the sea salt?", "Delete");
  const dialog = await screen.findByRole("dialog", { name: "Delete this run?" });
  expect(within(dialog).getByText(/its report with all ratings/)).toBeVisible();
  expect(within(dialog).getByText("Links that share its report stop working.")).toBeVisible();
  await user.click(within(dialog).getByRole("button", { name: "Delete permanently" }));
  expect(await within(dialog).findByText("A later run of its thread builds on it.")).toBeVisible();
  await user.click(within(dialog).getByRole("checkbox", { name: "Also delete the later run of its thread" }));
  await user.click(within(dialog).getByRole("button", { name: "Delete permanently" }));
  expect(await screen.findByText("2 runs are deleted.")).toBeVisible();
  expect(asked).toEqual([null, "true"]);
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

test("without any run the page explains how to begin, and a list that cannot be loaded says so", async () => {
  const first = renderPage("/runs");
  expect(await screen.findByRole("region", { name: "Getting started" })).toBeVisible();
  first.unmount();
  server.use(http.get(at("/runs"), () => problem(500, "Broken")));
  renderPage("/runs?tag=sea");
  expect(await screen.findByText("Broken", { selector: "b" })).toBeVisible();
});
