import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { aJob, aMetric, anEvaluation, anEvent, aVersion, JOB_ID } from "@/testing/builders";
import { renderPage } from "@/testing/render-page";
import { at, problem, server } from "@/testing/server";

function page(items: unknown[]) {
  return () => HttpResponse.json({ items, next: null });
}

/** The active version, and the next version of the same policy. */
function versions(state: "candidate" | "canary" = "candidate") {
  return page([
    aVersion({ state, canary_fraction: state === "canary" ? 0.1 : null }),
    aVersion({ id: "first", version: 1, state: "active", lineage: {} }),
  ]);
}

test("without jobs and policies the view explains how to start", async () => {
  const { user } = renderPage("/");
  await user.click(await screen.findByRole("link", { name: "Training" }));
  expect(await screen.findByText("offing loop deploy/loop.toml")).toBeVisible();
  expect(screen.getByText("offing train job.toml")).toBeVisible();
});

test("a job shows its step, metrics, groups, ledger and events", async () => {
  server.use(
    http.get(at("/training-jobs"), page([{ ...aJob(), reward: 0.5 }])),
    http.get(at("/training-jobs/:id/metrics"), ({ request }) =>
      HttpResponse.json(
        new URL(request.url).searchParams.get("after") === "0"
          ? {
              items: [
                aMetric(1, "reward", 0.25),
                aMetric(2, "groups", 4),
                aMetric(2, "groups_informative", 3),
                aMetric(2, "reward", 0.5),
                aMetric(2, "value_low/explained_variance", 0.75),
              ],
              next: 2,
            }
          : { items: [], next: null },
      ),
    ),
    http.get(at("/training-jobs/:id/events"), page([anEvent("created", { policy: "planner@1" })])),
  );
  renderPage("/training");
  expect(await screen.findByRole("img", { name: "Reward: 0.5" })).toBeInTheDocument();
  expect(screen.getByRole("img", { name: "KL: not measured" })).toBeInTheDocument();
  expect(screen.getByRole("img", { name: "Explained variance, actions: 0.75" })).toBeInTheDocument();
  expect(screen.queryByRole("img", { name: /^Explained variance, subgoals/ })).not.toBeInTheDocument();
  const job = within(screen.getByRole("article"));
  expect(job.getByText("step 2 of 60")).toBeVisible();
  expect(within(job.getByRole("region", { name: "Groups" })).getByText("3")).toBeVisible();
  expect(within(job.getByRole("region", { name: "Ledger" })).getByText("zero advantage")).toBeVisible();
  expect(job.getByText(/starts from planner@1/)).toBeVisible();
  expect(within(screen.getByRole("navigation", { name: "Jobs and policies" })).getByText("reward 0.5")).toBeVisible();
});

test("while a job runs, only the metrics of new steps are requested", async () => {
  const afters: (string | null)[] = [];
  let step = 1;
  server.use(
    http.get(at("/training-jobs"), page([{ ...aJob(), reward: null }])),
    http.get(at("/training-jobs/:id"), () => HttpResponse.json(aJob({ step }))),
    http.get(at("/training-jobs/:id/metrics"), ({ request }) => {
      const after = new URL(request.url).searchParams.get("after");
      afters.push(after);
      const fresh = step > Number(after);
      return HttpResponse.json({
        items: fresh ? [aMetric(step, "reward", step / 10)] : [],
        next: fresh ? step : null,
      });
    }),
  );
  renderPage(`/training?job=${JOB_ID}`);
  expect(await screen.findByRole("img", { name: "Reward: 0.1" })).toBeInTheDocument();
  step = 7;
  await waitFor(() => expect(screen.getByRole("img", { name: "Reward: 0.7" })).toBeInTheDocument(), { timeout: 8_000 });
  expect(afters.filter((after) => after === "0")).toHaveLength(1);
}, 15_000);

test("a job is paused at once, and cancelled only after a confirmation", async () => {
  const actions: string[] = [];
  let job = aJob();
  server.use(
    http.get(at("/training-jobs"), page([{ ...aJob(), reward: null }])),
    http.get(at("/training-jobs/:id"), () => HttpResponse.json(job)),
    http.post(at("/training-jobs/:id/:verb"), ({ params }) => {
      actions.push(String(params.verb));
      job = aJob({ requested_action: params.verb === "cancel" ? "cancel" : "pause" });
      return HttpResponse.json(job);
    }),
  );
  const { user } = renderPage("/training");
  await user.click(await screen.findByRole("button", { name: "Pause" }));
  expect(await screen.findByRole("button", { name: "Keep running" })).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  expect(actions).toEqual(["pause"]);
  await user.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Cancel the job" }));
  expect(await screen.findByRole("button", { name: "Cancelling after this step…" })).toBeDisabled();
  expect(actions).toEqual(["pause", "cancel"]);
});

test("a failed job shows why and can be resumed", async () => {
  const failed = aJob({ state: "failed", stop_reason: "guard", error: "Stopped at step 3: drop of mean reward." });
  server.use(
    http.get(at("/training-jobs"), page([{ ...failed, reward: null }])),
    http.get(at("/training-jobs/:id"), () => HttpResponse.json(failed)),
  );
  renderPage("/training");
  expect(await screen.findByRole("button", { name: "Resume" })).toBeVisible();
  expect(screen.getAllByText("Stopped at step 3: drop of mean reward.")).toHaveLength(2);
});

test("versions show lineage and evaluation, and link to their job", async () => {
  server.use(http.get(at("/policy-versions"), versions()), http.get(at("/evaluations"), page([anEvaluation()])));
  const { user, router } = renderPage("/training?policy=planner");
  expect(await screen.findByText("0.610")).toBeVisible();
  expect(screen.getByText(/0\.540 to 0\.680/)).toBeVisible();
  expect(screen.getByText(/offing policy evaluate planner@1/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "job 00000005" }));
  expect(router.state.location.search).toEqual({ job: JOB_ID });
});

test("promoting asks for confirmation, and a version that the gate rejects can be forced", async () => {
  const forced: unknown[] = [];
  server.use(
    http.get(at("/policy-versions"), versions()),
    http.post(at("/policy-versions/:id/promote"), async ({ request }) => {
      const { force } = (await request.json()) as { force: boolean };
      forced.push(force);
      if (!force) return problem(409, "planner@2 did not pass the gate: only 3 pairs.");
      return HttpResponse.json({ policy_version: aVersion({ state: "active" }), gate_result: null });
    }),
  );
  const { user } = renderPage("/training?policy=planner");
  await user.click(await screen.findByRole("button", { name: "Promote" }));
  expect(forced).toEqual([]);
  const dialog = within(screen.getByRole("dialog", { name: "Promote planner@2?" }));
  expect(dialog.getByText(/replaces planner@1/)).toBeVisible();
  await user.click(dialog.getByRole("button", { name: "Promote" }));
  expect((await dialog.findAllByText(/only 3 pairs/)).length).toBeGreaterThan(0);
  await user.click(dialog.getByRole("button", { name: "Promote without the gate" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(forced).toEqual([false, true]);
});

test("a canary gets the selected fraction, and an active version can be rolled back", async () => {
  const bodies: unknown[] = [];
  server.use(
    http.get(at("/policy-versions"), versions()),
    http.post(at("/policy-versions/:id/canary"), async ({ request }) => {
      bodies.push(await request.json());
      return HttpResponse.json(aVersion({ state: "canary", canary_fraction: 0.25 }));
    }),
    http.post(at("/policy-versions/:id/rollback"), ({ params }) => {
      bodies.push(params.id);
      return HttpResponse.json({ message: "" });
    }),
  );
  const { user } = renderPage("/training?policy=planner");
  await user.click(await screen.findByRole("button", { name: "Canary" }));
  await user.selectOptions(screen.getByRole("combobox", { name: "Fraction of new runs" }), "25%");
  await user.click(screen.getByRole("button", { name: "Start canary" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await user.click(screen.getByRole("button", { name: "Roll back" }));
  await user.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Roll back" }));
  await waitFor(() => expect(bodies).toEqual([{ fraction: 0.25 }, "first"]));
});

test("a canary can be withdrawn or promoted", async () => {
  server.use(http.get(at("/policy-versions"), versions("canary")));
  renderPage("/training?policy=planner");
  expect(await screen.findByRole("button", { name: "Withdraw" })).toBeVisible();
  expect(screen.getByRole("button", { name: "Promote" })).toBeVisible();
});
