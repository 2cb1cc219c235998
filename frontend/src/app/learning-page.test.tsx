import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import { aJob, aMetric, anEvent, aVersion, JOB_ID, RUN_ID, VERSION_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

function page(items: unknown[]) {
  return () => HttpResponse.json({ items, next: null });
}

function outlook(part: Record<string, unknown> = {}) {
  return () =>
    HttpResponse.json({
      name: "lessons",
      start: "lessons@1",
      job_id: null,
      runs: 14,
      rated_runs: 5,
      new_runs: 12,
      new_rated_runs: 4,
      new_groups: 5,
      comparisons: 3,
      withheld: 0,
      waiting: "",
      ...part,
    });
}

const CANDIDATE = aVersion({ name: "lessons", kind: "prompts", lineage: { job: JOB_ID, compared: 3 } });

function learning(part: Parameters<typeof aJob>[0] = {}) {
  const config = { engine: { engine: "litellm", model: "openai/m" }, usd: 0.5 };
  return aJob({ kind: "prompts", name: "lessons", config, phase: "comparing 3 of 3", ledger: { kept: 4 }, ...part });
}

beforeEach(() => {
  server.use(
    http.get(at("/prompt-libraries/:name/outlook"), outlook()),
    http.get(at("/policies/:id/library"), () =>
      HttpResponse.json({
        policy: "lessons@2",
        before: "lessons@1",
        changes: [
          { kind: "changed", id: "x1", before: "Search.", after: "Search first.", runs: [RUN_ID] },
          { kind: "removed", id: "x2", before: "Guess.", after: "", runs: [] },
        ],
        experiences: [{ id: "x1", text: "Search first. <script>alert(1)</script>", runs: [RUN_ID], groups: 2 }],
        cases: [{ question: "Who?", plan: ["search"], outcome: "She.", reward: 1, run_id: RUN_ID, new: true }],
        new_cases: 1,
        lost_cases: 0,
      }),
    ),
  );
});

test("what there is to learn from is counted, and one button starts the job", async () => {
  const asked: unknown[] = [];
  server.use(
    http.post(at("/prompt-libraries/:name/jobs"), async ({ request, params }) => {
      asked.push([params.name, await request.json()]);
      return HttpResponse.json(learning(), { status: 201 });
    }),
    http.get(at("/training-jobs/:id"), () => HttpResponse.json(learning())),
  );
  const { user, router } = renderPage("/training");
  await user.click(await screen.findByRole("button", { name: "Learn from rated runs" }));
  const view = within(await screen.findByRole("article", { name: "Learn from rated runs" }));
  const counted = async (name: string) => (await view.findByText(name)).nextSibling?.textContent;
  expect(await counted("rated runs since lessons@1")).toBe("4 of 5");
  expect(await counted("scored rollouts since lessons@1")).toBe("8 of 9");
  expect(screen.getByText("4 rated runs and 8 scored rollouts since lessons@1")).toBeVisible();
  await user.type(view.getByRole("combobox", { name: /Who compares/ }), "litellm:openai/m");
  await user.type(view.getByRole("textbox", { name: /Spend at most on comparing/ }), "0.5");
  await user.click(view.getByText(/^Measure it afterwards/));
  await user.type(view.getByRole("textbox", { name: /Dataset/ }), "held-out");
  await user.click(view.getByRole("button", { name: "Learn" }));
  await waitFor(() => expect(router.state.location.search).toEqual({ job: JOB_ID }));
  expect(asked).toEqual([
    [
      "lessons",
      expect.objectContaining({
        usd: 0.5,
        engine: expect.objectContaining({ model: "openai/m" }),
        gate: expect.objectContaining({
          dataset: "held-out",
          engine: expect.objectContaining({ model: "openai/m" }),
        }),
      }),
    ],
  ]);
});

test("without anything to learn from the page says what is missing", async () => {
  server.use(
    http.get(
      at("/prompt-libraries/:name/outlook"),
      outlook({ runs: 0, rated_runs: 0, new_runs: 0, new_rated_runs: 0, new_groups: 0, withheld: 2 }),
    ),
  );
  renderPage("/training?learn=lessons");
  expect(await screen.findByText(/2 rated runs of people are left out/)).toBeVisible();
  expect(screen.getByRole("button", { name: "Learn" })).toBeDisabled();
});

test("a refusal stays to be read, and a wrong limit is not sent", async () => {
  server.use(http.post(at("/prompt-libraries/:name/jobs"), () => problem(409, "Another job learns for lessons.")));
  const { user } = renderPage("/training?learn=lessons");
  await screen.findByText("rated runs since lessons@1");
  await user.type(screen.getByRole("textbox", { name: /Spend at most on comparing/ }), "much");
  await user.click(screen.getByRole("button", { name: "Learn" }));
  expect(screen.getByText(/as a number of dollars/)).toBeVisible();
  await user.clear(screen.getByRole("textbox", { name: /Spend at most on comparing/ }));
  await user.click(screen.getByRole("button", { name: "Learn" }));
  expect((await screen.findAllByText(/Another job learns/)).length).toBeGreaterThan(0);
});

test("a job that learns shows how far it is and what it has cost, and no curves", async () => {
  server.use(
    http.get(at("/training-jobs/:id"), () => HttpResponse.json(learning())),
    http.get(
      at("/training-jobs/:id/metrics"),
      page([
        aMetric(2, "compared", 2),
        aMetric(2, "total", 3),
        aMetric(2, "usd", 0.04),
        aMetric(2, "priced", 0),
        aMetric(2, "prompt_tokens", 3000),
        aMetric(2, "completion_tokens", 120),
      ]),
    ),
    http.get(at("/training-jobs/:id/events"), page([anEvent("created", { runs: 12, rated_runs: 4 })])),
  );
  renderPage(`/training?job=${JOB_ID}`);
  const job = within(await screen.findByRole("article"));
  expect(await job.findByText("3,120 tokens, at least $0.04")).toBeVisible();
  expect(job.getByText("of 3 comparisons", { exact: false })).toBeVisible();
  expect(job.getByText("Learning")).toBeVisible();
  expect(job.getByRole("progressbar", { name: "Comparisons" })).toHaveValue(2);
  expect(job.getByText(/with 4 rated runs and 8 scored rollouts/)).toBeVisible();
  expect(job.queryByRole("region", { name: "Groups" })).not.toBeInTheDocument();
});

test("a candidate's text is shown as text, with what it changed and the runs behind it", async () => {
  server.use(
    http.get(at("/training-jobs/:id"), () => HttpResponse.json(learning({ state: "done", produced_id: VERSION_ID }))),
    http.get(at("/policies"), page([CANDIDATE])),
  );
  const { user, router } = renderPage(`/training?job=${JOB_ID}`);
  const made = within(await screen.findByRole("region", { name: "lessons@2" }));
  expect(await made.findByText("Search first. <script>alert(1)</script>")).toBeVisible();
  expect(made.getByText("1 experience, 2 changed since lessons@1")).toBeVisible();
  expect(made.getByText("Search.")).toBeVisible();
  expect(made.getByText("Guess.")).toBeVisible();
  expect(made.getByRole("button", { name: "Promote" })).toBeVisible();
  const [first] = made.getAllByRole("link", { name: RUN_ID.slice(-8) });
  if (first) await user.click(first);
  expect(router.state.location.pathname).toBe(`/runs/${RUN_ID}`);
});

test("a version's text is fetched when it is opened", async () => {
  server.use(http.get(at("/policies"), page([CANDIDATE])));
  const { user } = renderPage("/training?policy=lessons");
  expect(await screen.findByText(/3 comparisons/)).toBeVisible();
  expect(screen.queryByText(/Search first/)).not.toBeInTheDocument();
  await user.click(screen.getByText("What it says"));
  expect((await screen.findAllByText(/Search first/)).length).toBeGreaterThan(0);
});
