import { expect, test } from "vitest";
import { type Graph, listEngineOptions } from "@/shared/api/installation";
import { buildRunRequest, describeAttached, type QuestionDraft } from "./request";
import { DEFAULT_SETTINGS } from "./settings";
import { validateToolPolicy } from "./tool-policy";
import { findField, validateDraft, validateEngine } from "./validation";

const GRAPHS = [{ name: "agentflow", roles: ["planner", "verifier"] }] as Graph[];
const PARTS = { graphs: GRAPHS, toolPolicy: null };

function draft(part: Partial<QuestionDraft> = {}): QuestionDraft {
  return { ...DEFAULT_SETTINGS, question: "  How?  ", sources: [], attachedTo: [], singles: [], ...part };
}

const SCOPE = {
  collections: [],
  sources: [],
  web: false,
  mcp: [],
  code: false,
  only_domains: [],
  excluded_domains: [],
  offline: false,
};

test("empty limits are no limits, minutes become seconds", () => {
  expect(buildRunRequest(draft(), PARTS).budget).toEqual({ depth: "standard", max_turns: 12 });
  expect(buildRunRequest(draft({ turns: 40 }), PARTS).budget?.depth).toBe("deep");
  expect(buildRunRequest(draft({ usd: "2.5", minutes: "3", tokens: "9000" }), PARTS).budget).toEqual({
    depth: "standard",
    max_turns: 12,
    max_cost_usd: 2.5,
    max_seconds: 180,
    max_tokens: 9000,
  });
});

test("attached documents replace collections", () => {
  const request = buildRunRequest(draft({ collections: ["papers"], sources: ["x"] }), PARTS);
  expect(request.scope).toEqual({ ...SCOPE, sources: ["x"] });
});

test("the scope includes the web in addition to the documents, and only if it is selected", () => {
  expect(buildRunRequest(draft({ collections: ["papers"], web: true }), PARTS).scope).toEqual({
    ...SCOPE,
    collections: ["papers"],
    web: true,
  });
  expect(buildRunRequest(draft({ sources: ["x"], web: true }), PARTS).scope).toMatchObject({ web: true });
});

test("the scope names MCP servers", () => {
  expect(buildRunRequest(draft({ mcp: ["wiki"] }), PARTS).scope).toMatchObject({ mcp: ["wiki"] });
});

test("a selected engine answers every role of the graph, including model names with colons", () => {
  const { engines } = buildRunRequest(draft({ engine: "litellm:ollama/qwen:7b" }), PARTS);
  expect(Object.keys(engines)).toEqual(["planner", "verifier"]);
  expect(engines.planner).toMatchObject({ engine: "litellm", model: "ollama/qwen:7b" });
  expect(buildRunRequest(draft(), PARTS).engines).toEqual({});
});

test("an invalid draft has an error that says what to change", () => {
  expect(validateDraft(draft())).toEqual({});
  expect(validateDraft(draft({ question: " a " })).question).toMatch(/three characters/);
  expect(validateDraft(draft({ usd: "two" })).usd).toMatch(/dollars/);
  expect(validateDraft(draft({ minutes: "0" })).minutes).toMatch(/above zero/);
  expect(validateDraft(draft({ question: "x".repeat(8_001) })).question).toMatch(/8,000/);
});

test("engines that cannot be used are not offered", () => {
  const engines = [
    { name: "extractive", available: true, models: [], note: "", model_details: [], texts: {}, offered_at: "" },
    {
      name: "litellm:openai",
      available: true,
      models: ["openai/a", "openai/b"],
      note: "",
      model_details: [],
      texts: {},
      offered_at: "",
    },
    {
      name: "litellm:groq",
      available: false,
      models: ["groq/p"],
      note: "",
      model_details: [],
      texts: {},
      offered_at: "",
    },
  ];
  expect(listEngineOptions(engines)).toEqual(["extractive", "litellm:openai/a", "litellm:openai/b"]);
});

test("the scope includes code only if it is selected", () => {
  expect(buildRunRequest(draft({ code: true }), PARTS).scope).toMatchObject({ code: true });
});

test("more documents than a scope may name are named by the collections that hold them", () => {
  const sources = Array.from({ length: 1_001 }, (_, at) => String(at));
  const scope = buildRunRequest(draft({ sources, attachedTo: ["papers"] }), PARTS).scope;
  expect(scope).toMatchObject({ collections: ["papers"], sources: [] });
  expect(validateDraft(draft({ question: "Why?", sources, attachedTo: ["papers"] }))).toEqual({});
});

test("a single document in addition to more documents than a scope may name is an error with the solution", () => {
  const sources = Array.from({ length: 1_001 }, (_, at) => String(at));
  const error = validateDraft(draft({ question: "Why?", sources, attachedTo: ["papers"], singles: ["tower.pdf"] }));
  expect(error.documents).toMatch(/tower\.pdf is in no folder\. Choose Clear, move it into a folder/);
  const singles = ["a.md", "b.md", "c.md", "d.md", "e.md"];
  expect(validateDraft(draft({ question: "Why?", sources, singles })).documents).toMatch(
    /a\.md, b\.md, c\.md and 2 more are in no folder/,
  );
  expect(validateDraft(draft({ question: "Why?", sources: sources.slice(1), singles }))).toEqual({});
});

test("the description of attached documents is what the run will read", () => {
  const sources = Array.from({ length: 1_001 }, (_, at) => String(at));
  const attached = { sources, attachedTo: ["papers"], singles: [] };
  expect(describeAttached({ ...attached, sources: [] })).toBeNull();
  expect(describeAttached({ ...attached, sources: ["a"] })).toBe("Reads only the 1 document you attached.");
  expect(describeAttached(attached)).toBe("Reads the collection papers, with all of its documents.");
  expect(describeAttached({ ...attached, attachedTo: ["papers", "/srv/notes"] })).toBe(
    "Reads the collections papers and notes, with all of their documents.",
  );
  expect(describeAttached({ ...attached, singles: ["tower.pdf"] })).toMatch(/tower\.pdf is in no folder/);
});

test("an engine that no role can use is an error and is not dropped", () => {
  expect(validateEngine(draft({ engine: "extractive" }), GRAPHS)).toBeNull();
  expect(validateEngine(draft({ engine: "extractive", graph: "gone" }), GRAPHS)).toMatch(/is not available/);
  const bare = [{ name: "own", title: "Own", roles: [] as string[] }] as Graph[];
  expect(validateEngine(draft({ engine: "extractive", graph: "own" }), bare)).toMatch(/no roles/);
  expect(validateEngine(draft({ graph: "own" }), bare)).toBeNull();
});

test("each option reaches the request", () => {
  const request = buildRunRequest(
    draft({
      turns: 2048,
      preset: "fast",
      engine: "litellm:openai/a",
      roleEngines: { verifier: "extractive", planner: " " },
      web: true,
      onlyDomains: "example.org, https://docs.example.net\nexample.org",
      excludedDomains: "ads.example.org",
      length: "brief",
      language: " pt-BR ",
      template: "Summary\nRisks",
      clarify: true,
      reviewPlan: true,
    }),
    PARTS,
  );
  expect(request).toMatchObject({
    preset: "fast",
    budget: { max_turns: 2048, depth: "deep" },
    engines: { planner: { model: "openai/a" }, verifier: { engine: "extractive", model: "" } },
    scope: { only_domains: ["example.org", "https://docs.example.net"], excluded_domains: ["ads.example.org"] },
    report_style: { length: "brief", language: "pt-BR", template: "Summary\nRisks" },
    interactions: ["clarify", "plan_review"],
  });
  expect(buildRunRequest(draft({ offline: true }), PARTS).scope).toMatchObject({ offline: true });
  expect(buildRunRequest(draft(), PARTS)).not.toHaveProperty("report_style");
  expect(buildRunRequest(draft({ onlyDomains: "example.org" }), PARTS).scope).toEqual(SCOPE);
});

test("the tool policy of the request is the stored one, and by default there is none", () => {
  const toolPolicy = { rules: [] };
  expect(buildRunRequest(draft(), { graphs: GRAPHS, toolPolicy }).tool_policy).toEqual(toolPolicy);
  expect(buildRunRequest(draft(), PARTS)).not.toHaveProperty("tool_policy");
});

test("a tool policy that is deleted or cannot be read is an error that names it", () => {
  const stored = [
    { name: "searching", policy: { rules: [] } },
    { name: "older", policy: null },
  ];
  expect(validateToolPolicy({ toolPolicy: "" }, [])).toBeNull();
  expect(validateToolPolicy({ toolPolicy: "searching" }, stored)).toBeNull();
  expect(validateToolPolicy({ toolPolicy: "searching" }, [])).toMatch(/searching is no longer stored/);
  expect(validateToolPolicy({ toolPolicy: "older" }, stored)).toMatch(/cannot read the tool policy older/);
});

test("errors belong to their fields", () => {
  const errors = validateDraft(
    draft({
      question: "Why?",
      turns: 2049,
      tokens: "1.5",
      onlyDomains: "example.org com",
      excludedDomains: Array.from({ length: 51 }, (_, at) => `d${at}.org`).join(" "),
      language: "german!",
      template: "x".repeat(4_001),
      offline: true,
      mcp: ["wiki"],
    }),
  );
  expect(Object.keys(errors).sort()).toEqual(
    ["excludedDomains", "language", "offline", "onlyDomains", "template", "tokens", "turns"].sort(),
  );
  expect(errors.onlyDomains).toMatch(/“com” is not a domain/);
});

test.each([
  ["scope.only_domains.0", "onlyDomains"],
  ["scope.offline", "offline"],
  ["engines.planner.model", "engine"],
  ["report_style.template", "template"],
  ["budget.max_seconds", "minutes"],
  ["interactions", "reviewPlan"],
  ["tool_policy.rules.0.tool", "toolPolicy"],
  ["thread_id", null],
  ["questions", null],
  [null, null],
])("the field %s of the server is %s in the form", (apiField, field) => {
  expect(findField(apiField)).toBe(field);
});
