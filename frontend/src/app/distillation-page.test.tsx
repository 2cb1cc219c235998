import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import { aJob, aMetric, anEvent, aVersion, JOB_ID, RUN_ID, VERSION_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

function page(items: unknown[]) {
  return () => HttpResponse.json({ items, next: null });
}

function servePreview(part: Record<string, unknown> = {}) {
  return () =>
    HttpResponse.json({
      name: "lessons",
      start_version: "lessons@1",
      job_id: null,
      runs: 14,
      rated_runs: 5,
      new_runs: 12,
      new_rated_runs: 4,
      new_groups: 5,
      comparisons: 3,
      withheld_runs: 0,
      waiting_candidate: "",
      ...part,
    });
}

const CANDIDATE = aVersion({ name: "lessons", kind: "prompt_library", lineage: { job: JOB_ID, compared: 3 } });

function aDistillationJob(part: Parameters<typeof aJob>[0] = {}) {
  const config = { engine: { engine: "litellm", model: "openai/m" }, usd: 0.5 };
  return aJob({
    kind: "prompt_library",
    name: "lessons",
    config,
    phase: "comparing 3 of 3",
    ledger: { used: 4 },
    ...part,
  });
}

beforeEach(() => {
  server.use(
    http.get(at("/prompt-libraries/:name/preview"), servePreview()),
    http.get(at("/policy-versions/:id/prompt-library"), () =>
      HttpResponse.json({
        policy: "lessons@2",
        previous_version: "lessons@1",
        changes: [
          { kind: "changed", id: "x1", before: "Search.", after: "Search first.", run_ids: [RUN_ID] },
          { kind: "removed", id: "x2", before: "Guess.", after: "", run_ids: [] },
        ],
        experiences: [{ id: "x1", text: "Search first. <script>alert(1)</script>", run_ids: [RUN_ID], groups: 2 }],
        cases: [{ question: "Who?", plan: ["search"], outcome: "She.", reward: 1, run_id: RUN_ID, is_new: true }],
        new_cases: 1,
        removed_cases: 0,
      }),
    ),
  );
});

test("the preview counts rated runs, and one button starts the job", async () => {
  const requests: unknown[] = [];
  server.use(
    http.post(at("/prompt-libraries/:name/distill"), async ({ request, params }) => {
      requests.push([params.name, await request.json()]);
      return HttpResponse.json(aDistillationJob(), { status: 201 });
    }),
    http.get(at("/training-jobs/:id"), () => HttpResponse.json(aDistillationJob())),
  );
  const { user, router } = renderPage("/training");
  await user.click(await screen.findByRole("button", { name: "Distill rated runs" }));
  const view = within(await screen.findByRole("article", { name: "Distill rated runs" }));
  const counted = async (name: string) => (await view.findByText(name)).nextSibling?.textContent;
  expect(await counted("rated runs since lessons@1")).toBe("4 of 5");
  expect(await counted("scored rollouts since lessons@1")).toBe("8 of 9");
  expect(screen.getByText("4 rated runs and 8 scored rollouts since lessons@1")).toBeVisible();
  await user.type(view.getByRole("combobox", { name: /Engine for comparisons/ }), "litellm:openai/m");
  await user.type(view.getByRole("textbox", { name: /Maximum cost of comparisons/ }), "0.5");
  await user.click(view.getByText(/^Evaluate on held-out tasks/));
  await user.type(view.getByRole("textbox", { name: /Dataset/ }), "held-out");
  await user.click(view.getByRole("button", { name: "Distill" }));
  await waitFor(() => expect(router.state.location.search).toEqual({ job: JOB_ID }));
  expect(requests).toEqual([
    [
      "lessons",
      expect.objectContaining({
        max_cost_usd: 0.5,
        engine: expect.objectContaining({ model: "openai/m" }),
        gate: expect.objectContaining({
          dataset: "held-out",
          engine: expect.objectContaining({ model: "openai/m" }),
        }),
      }),
    ],
  ]);
});

test("without rated runs the form says what is missing", async () => {
  server.use(
    http.get(
      at("/prompt-libraries/:name/preview"),
      servePreview({ runs: 0, rated_runs: 0, new_runs: 0, new_rated_runs: 0, new_groups: 0, withheld_runs: 2 }),
    ),
  );
  renderPage("/training?distill=lessons");
  expect(await screen.findByText(/2 rated runs of users are excluded/)).toBeVisible();
  expect(screen.getByRole("button", { name: "Distill" })).toBeDisabled();
});

test("an error stays visible, and an invalid limit is not sent", async () => {
  server.use(http.post(at("/prompt-libraries/:name/distill"), () => problem(409, "Another job learns for lessons.")));
  const { user } = renderPage("/training?distill=lessons");
  await screen.findByText("rated runs since lessons@1");
  await user.type(screen.getByRole("textbox", { name: /Maximum cost of comparisons/ }), "much");
  await user.click(screen.getByRole("button", { name: "Distill" }));
  expect(screen.getByText(/as a number of dollars/)).toBeVisible();
  await user.clear(screen.getByRole("textbox", { name: /Maximum cost of comparisons/ }));
  await user.click(screen.getByRole("button", { name: "Distill" }));
  expect((await screen.findAllByText(/Another job learns/)).length).toBeGreaterThan(0);
});

test("a distillation job shows its progress and cost, and no charts", async () => {
  server.use(
    http.get(at("/training-jobs/:id"), () => HttpResponse.json(aDistillationJob())),
    http.get(
      at("/training-jobs/:id/metrics"),
      page([
        aMetric(2, "compared", 2),
        aMetric(2, "total", 3),
        aMetric(2, "cost_usd", 0.04),
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
  expect(job.getByText("Distilling")).toBeVisible();
  expect(job.getByRole("progressbar", { name: "Comparisons" })).toHaveValue(2);
  expect(job.getByText(/with 4 rated runs and 8 scored rollouts/)).toBeVisible();
  expect(job.queryByRole("region", { name: "Groups" })).not.toBeInTheDocument();
});

test("the text of a candidate is shown as text, with its changes and the runs that it comes from", async () => {
  server.use(
    http.get(at("/training-jobs/:id"), () =>
      HttpResponse.json(aDistillationJob({ state: "done", produced_version_id: VERSION_ID })),
    ),
    http.get(at("/policy-versions"), page([CANDIDATE])),
  );
  const { user, router } = renderPage(`/training?job=${JOB_ID}`);
  const candidate = within(await screen.findByRole("region", { name: "lessons@2" }));
  expect(await candidate.findByText("Search first. <script>alert(1)</script>")).toBeVisible();
  expect(candidate.getByText("1 experience, 2 changed since lessons@1")).toBeVisible();
  expect(candidate.getByText("Search.")).toBeVisible();
  expect(candidate.getByText("Guess.")).toBeVisible();
  expect(candidate.getByRole("button", { name: "Promote" })).toBeVisible();
  const [first] = candidate.getAllByRole("link", { name: RUN_ID.slice(-8) });
  if (first) await user.click(first);
  expect(router.state.location.pathname).toBe(`/runs/${RUN_ID}`);
});

test("a version's text is fetched when it is opened", async () => {
  server.use(http.get(at("/policy-versions"), page([CANDIDATE])));
  const { user } = renderPage("/training?policy=lessons");
  expect(await screen.findByText(/3 comparisons/)).toBeVisible();
  expect(screen.queryByText(/Search first/)).not.toBeInTheDocument();
  await user.click(screen.getByText("Show text"));
  expect((await screen.findAllByText(/Search first/)).length).toBeGreaterThan(0);
});
