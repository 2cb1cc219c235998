// @vitest-environment jsdom

import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { at, problem, server } from "@/testing/server";
import { changeRuns, deleteRuns } from "./run-changes";

/** Runs of a list that has the oldest first. */
const runs = Array.from({ length: 250 }, (_, n) => ({
  id: `run-${n}`,
  created_at: new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString(),
}));

test("of more runs than one request takes, the latest are deleted first", async () => {
  const requests: string[][] = [];
  server.use(
    http.post(at("/runs/deletions"), async ({ request }) => {
      requests.push(((await request.json()) as { run_ids: string[] }).run_ids);
      return HttpResponse.json({ items: [] });
    }),
  );
  await deleteRuns(runs, false);
  expect(requests.flat()).toEqual(runs.map(({ id }) => id).reverse());
  expect(requests.map((part) => part.length)).toEqual([200, 50]);
});

test("the runs of a request that failed are reported, and those of the request before it stay done", async () => {
  let requests = 0;
  server.use(
    http.post(at("/runs/deletions"), async ({ request }) => {
      requests += 1;
      if (requests > 1) return problem(503, "Service Unavailable", { detail: "The database does not answer." });
      const { run_ids } = (await request.json()) as { run_ids: string[] };
      const deletion = { run_ids: [], child_runs: 0, kept_fork_ids: [] };
      return HttpResponse.json({ items: run_ids.map((run_id) => ({ run_id, deletion, problem: null })) });
    }),
  );
  const results = await deleteRuns(runs, false);
  expect(results).toHaveLength(runs.length);
  expect(results.filter(({ deletion }) => deletion)).toHaveLength(200);
  expect(results.at(-1)?.problem).toMatchObject({ status: 503, detail: "The database does not answer." });
});

test("a first request that failed is an error, because nothing has changed", async () => {
  server.use(http.patch(at("/runs"), () => problem(503, "Service Unavailable")));
  await expect(changeRuns([{ run_id: "run-0", pinned: true }])).rejects.toThrow("Service Unavailable");
});
