import { expect, test } from "vitest";
import { aRun } from "@/testing/builders";
import { buildDeeperRequest, buildFollowUp, describeScope } from "./follow-up";

test("a follow-up stays in the thread with its graph and engines", () => {
  const run = aRun();
  expect(buildFollowUp(run, "And then?", 4)).toMatchObject({
    question: "And then?",
    thread_id: run.thread_id,
    graph: run.graph,
    budget: { max_turns: 4 },
  });
});

test("a follow-up with the turns of its run has its depth", () => {
  const run = aRun({ budget: { max_turns: 60, depth: "deep" } });
  expect(buildFollowUp(run, "And then?", 60).budget?.depth).toBe("deep");
  expect(buildFollowUp(run, "And then?", 4).budget?.depth).toBe("quick");
});

test("a follow-up on a report has a kind, and digging deeper is always research", () => {
  const run = aRun({ title: "Connections" });
  expect(buildFollowUp(run, "Shorter", 4, "edit").follow_up).toEqual({ kind: "edit", run_id: run.id });
  expect(buildFollowUp(run, "And then?", 4).follow_up).toEqual({ kind: "auto", run_id: run.id });
  expect(buildDeeperRequest(run).follow_up).toEqual({ kind: "research", run_id: run.id });
  expect(buildFollowUp(aRun({ title: null }), "And then?", 4).follow_up).toBeNull();
});

test("a follow-up has the scope of its run, and describes it", () => {
  const scope = {
    ...aRun().scope,
    collections: ["/home/me/papers", "notes"],
    web: true,
    code: true,
    mcp: ["tickets"],
  };
  const run = aRun({ scope });
  expect(buildFollowUp(run, "And then?", 4).scope).toEqual(scope);
  expect(buildDeeperRequest(run).scope).toEqual(scope);
  expect(describeScope(scope)).toBe("papers, notes, the web, code and tickets");
  expect(describeScope({ ...scope, sources: ["a", "b"], web: false, code: false, mcp: [] })).toBe("2 documents");
  expect(describeScope(aRun().scope)).toBe("all documents");
  expect(describeScope({ ...aRun().scope, web: true, only_domains: ["a.org", "b.org"] })).toBe(
    "all documents and a.org and b.org on the web",
  );
  expect(describeScope({ ...aRun().scope, offline: true })).toBe("all documents and nothing outside this machine");
});

test("digging deeper uses the next preset and twice the other limits", () => {
  const budget = { depth: "standard" as const, max_turns: 12, max_tokens: null, max_cost_usd: 1.5, max_seconds: 60 };
  expect(buildDeeperRequest(aRun({ budget })).budget).toEqual({
    depth: "deep",
    max_turns: 40,
    max_tokens: null,
    max_cost_usd: 3,
    max_seconds: 120,
  });
});

test("digging deeper into a deep run is deep", () => {
  const run = aRun({ budget: { max_turns: 8, depth: "deep" } });
  expect(buildDeeperRequest(run).budget).toMatchObject({ depth: "deep", max_turns: 12 });
});

test("beyond the presets the turn limit doubles, up to the maximum", () => {
  const turns = (given: number) =>
    buildDeeperRequest(aRun({ budget: { max_turns: given, depth: "standard" } })).budget?.max_turns;
  expect([0, 4, 40, 2_000].map(turns)).toEqual([4, 12, 80, 2_048]);
});
