import { expect, test } from "vitest";
import type { Graph } from "@/shared/api/catalog";
import { attachedWords, complaint, type Draft, engineComplaint, engineOptions, runRequest } from "./request";

const GRAPHS = [{ name: "agentflow", roles: ["planner", "verifier"] }] as Graph[];

function draft(part: Partial<Draft> = {}): Draft {
  return {
    question: "  How?  ",
    turns: 12,
    usd: "",
    minutes: "",
    graph: "agentflow",
    engine: "",
    collections: [],
    sources: [],
    attachedTo: [],
    singles: [],
    web: false,
    code: false,
    mcp: [],
    ...part,
  };
}

test("empty limits are no limits, minutes become seconds", () => {
  expect(runRequest(draft(), GRAPHS).budget).toEqual({ turns: 12, usd: null, seconds: null });
  expect(runRequest(draft({ usd: "2.5", minutes: "3" }), GRAPHS).budget).toEqual({ turns: 12, usd: 2.5, seconds: 180 });
});

test("attached documents take the place of collections", () => {
  const request = runRequest(draft({ collections: ["papers"], sources: ["x"] }), GRAPHS);
  expect(request.scope).toEqual({ collections: [], sources: ["x"], web: false, mcp: [], code: false });
});

test("the web is asked for beside the documents, and only when it is chosen", () => {
  expect(runRequest(draft({ collections: ["papers"], web: true }), GRAPHS).scope).toEqual({
    collections: ["papers"],
    sources: [],
    web: true,
    mcp: [],
    code: false,
  });
  expect(runRequest(draft({ sources: ["x"], web: true }), GRAPHS).scope).toMatchObject({ web: true });
});

test("servers are asked for by name", () => {
  expect(runRequest(draft({ mcp: ["wiki"] }), GRAPHS).scope).toMatchObject({ mcp: ["wiki"] });
});

test("a chosen engine answers every role of the graph, model names with colons included", () => {
  const { engines } = runRequest(draft({ engine: "litellm:ollama/qwen:7b" }), GRAPHS);
  expect(Object.keys(engines)).toEqual(["planner", "verifier"]);
  expect(engines.planner).toMatchObject({ engine: "litellm", model: "ollama/qwen:7b" });
  expect(runRequest(draft(), GRAPHS).engines).toEqual({});
});

test("what cannot be asked is named with its remedy", () => {
  expect(complaint(draft())).toBeNull();
  expect(complaint(draft({ question: " a " }))).toMatch(/three characters/);
  expect(complaint(draft({ usd: "two" }))).toMatch(/dollars/);
  expect(complaint(draft({ minutes: "0" }))).toMatch(/above zero/);
  expect(complaint(draft({ question: "x".repeat(8_001) }))).toMatch(/8,000/);
});

test("engines that cannot be used are not offered", () => {
  const engines = [
    { name: "extractive", available: true, models: [], note: "", offered_at: "" },
    { name: "litellm:openai", available: true, models: ["openai/a", "openai/b"], note: "", offered_at: "" },
    { name: "litellm:groq", available: false, models: ["groq/p"], note: "", offered_at: "" },
  ];
  expect(engineOptions(engines)).toEqual(["extractive", "litellm:openai/a", "litellm:openai/b"]);
});

test("code is asked for only when it is chosen", () => {
  expect(runRequest(draft({ code: true }), GRAPHS).scope).toMatchObject({ code: true });
});

test("more documents than a scope may name are named by the collections that hold them", () => {
  const sources = Array.from({ length: 1_001 }, (_, at) => String(at));
  const scope = runRequest(draft({ sources, attachedTo: ["papers"] }), GRAPHS).scope;
  expect(scope).toMatchObject({ collections: ["papers"], sources: [] });
  expect(complaint(draft({ question: "Why?", sources, attachedTo: ["papers"] }))).toBeNull();
});

test("beside more documents than a scope may name, a single one is a complaint that names it and says what to do", () => {
  const sources = Array.from({ length: 1_001 }, (_, at) => String(at));
  const wrong = complaint(draft({ question: "Why?", sources, attachedTo: ["papers"], singles: ["tower.pdf"] }));
  expect(wrong).toMatch(/tower\.pdf is in none\. Choose Clear, put it into a folder/);
  const singles = ["a.md", "b.md", "c.md", "d.md", "e.md"];
  expect(complaint(draft({ question: "Why?", sources, singles }))).toMatch(
    /a\.md, b\.md, c\.md and 2 more are in none/,
  );
  expect(complaint(draft({ question: "Why?", sources: sources.slice(1), singles }))).toBeNull();
});

test("what is said of attached documents is what the run will read", () => {
  const sources = Array.from({ length: 1_001 }, (_, at) => String(at));
  const attached = { sources, attachedTo: ["papers"], singles: [] };
  expect(attachedWords({ ...attached, sources: [] })).toBeNull();
  expect(attachedWords({ ...attached, sources: ["a"] })).toBe("Reads only the 1 document you attached.");
  expect(attachedWords(attached)).toBe("Reads the collection papers, with everything that it holds.");
  expect(attachedWords({ ...attached, attachedTo: ["papers", "/srv/notes"] })).toBe(
    "Reads the collections papers and notes, with everything that they hold.",
  );
  expect(attachedWords({ ...attached, singles: ["tower.pdf"] })).toMatch(/tower\.pdf is in none/);
});

test("an engine that no role would answer with is a complaint and never dropped", () => {
  expect(engineComplaint(draft({ engine: "extractive" }), GRAPHS)).toBeNull();
  expect(engineComplaint(draft({ engine: "extractive", graph: "gone" }), GRAPHS)).toMatch(/does not offer/);
  const bare = [{ name: "own", title: "Own", roles: [] as string[] }] as Graph[];
  expect(engineComplaint(draft({ engine: "extractive", graph: "own" }), bare)).toMatch(/no roles/);
  expect(engineComplaint(draft({ graph: "own" }), bare)).toBeNull();
});
