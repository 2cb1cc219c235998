import { expect, test } from "vitest";
import { aRun } from "@/testing/builders";
import { deeperRequest, followUpRequest, scopeWords } from "./follow-up";

test("a follow-up stays in the thread with its graph and engines", () => {
  const run = aRun();
  expect(followUpRequest(run, "And then?", 4)).toMatchObject({
    question: "And then?",
    thread_id: run.thread_id,
    graph: run.graph,
    budget: { turns: 4 },
  });
});

test("a follow-up sees and uses what its run did, and says so", () => {
  const scope = { collections: ["/home/me/papers", "notes"], sources: [], web: true, code: true, mcp: ["tickets"] };
  const run = aRun({ scope });
  expect(followUpRequest(run, "And then?", 4).scope).toEqual(scope);
  expect(deeperRequest(run).scope).toEqual(scope);
  expect(scopeWords(scope)).toBe("papers, notes, the web, code and tickets");
  expect(scopeWords({ ...scope, sources: ["a", "b"], web: false, code: false, mcp: [] })).toBe("2 documents");
  expect(scopeWords(aRun().scope)).toBe("all documents");
});

test("digging deeper takes the next preset and twice what was limited", () => {
  const budget = { turns: 12, tokens: null, usd: 1.5, seconds: 60 };
  expect(deeperRequest(aRun({ budget })).budget).toEqual({ turns: 40, tokens: null, usd: 3, seconds: 120 });
});

test("beyond the presets it doubles, up to what a run may have", () => {
  const turns = (given: number) => deeperRequest(aRun({ budget: { turns: given } })).budget?.turns;
  expect([0, 4, 40, 2_000].map(turns)).toEqual([4, 12, 80, 2_048]);
});
