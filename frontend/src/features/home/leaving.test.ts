import { expect, test } from "vitest";
import { listDifferences } from "./differences";
import { describeLeaving, type KnownModels } from "./leaving";
import { DEFAULT_SETTINGS, type Settings } from "./settings";

const leaving = (part: Partial<Settings>, known: KnownModels = { providers: [] }) =>
  describeLeaving({ ...DEFAULT_SETTINGS, ...part }, undefined, known);

/** A stored provider. */
const at = (name: string, address: string) => ({ name, provider: "openai", api_base: address });

test("one sentence says what leaves this machine", () => {
  expect(leaving({ engine: "extractive" })).toBe("Nothing leaves this machine.");
  expect(leaving({ offline: true })).toMatch(/^Nothing leaves this machine\./);
  expect(leaving({})).toBe("Leaves this machine: question and passages to the default model, if it is elsewhere.");
  expect(leaving({ engine: "litellm:openai/a;fallback=groq/b", roleEngines: { planner: "litellm:ollama/c" } })).toBe(
    "Leaves this machine: question and passages to openai and groq · question and passages to your own model server, if it is elsewhere.",
  );
  expect(leaving({ engine: "extractive", web: true, onlyDomains: "a.org b.org", mcp: ["tickets"] })).toBe(
    "Leaves this machine: searches to the search engines · addresses of pages to a.org and b.org · arguments of tools to tickets.",
  );
});

test.each([
  ["http://127.0.0.1:9001/v1", "Nothing leaves this machine."],
  ["http://localhost:9001/v1", "Nothing leaves this machine."],
  ["http://[::1]:9001/v1", "Nothing leaves this machine."],
  ["http://10.0.0.5:9001/v1", "Leaves this machine: question and passages to lab."],
  ["", "Leaves this machine: question and passages to lab."],
])("the address “%s” of a stored provider decides whether the question leaves this machine", (address, text) => {
  expect(leaving({ engine: "litellm:lab/qwen;max_tokens=900" }, { providers: [at("lab", address)] })).toBe(text);
});

test("a preset is judged by its models, and a name alone says nothing about an address", () => {
  const lab = {
    engine: "litellm",
    model: "lab/qwen",
    api_base: "",
    options: {},
    prompt_format: "",
    prompt_library: "",
  };
  const presets = [{ name: "mine", engines: { all: { ...lab, fallbacks: [{ ...lab, model: "groq/b" }] } } }];
  const providers = [at("lab", "http://127.0.0.1:9001")];
  expect(leaving({ preset: "mine" }, { presets, providers })).toBe(
    "Leaves this machine: question and passages to groq.",
  );
  expect(leaving({ preset: "mine" }, {})).toBe(
    "Leaves this machine: question and passages to the models of the preset mine, if they are elsewhere.",
  );
  expect(leaving({ engine: "litellm:lab/qwen" }, {})).toBe(
    "Leaves this machine: question and passages to the model lab/qwen, if it is elsewhere.",
  );
});

test("only what differs from the defaults is listed", () => {
  expect(listDifferences(DEFAULT_SETTINGS)).toEqual([]);
  expect(
    listDifferences({
      ...DEFAULT_SETTINGS,
      graph: "hiper",
      web: true,
      excludedDomains: "ads.org",
      usd: "2",
      length: "brief",
      reviewPlan: true,
    }),
  ).toEqual(["hiper", "web", "not ads.org", "at most $2", "brief report", "shows its plan"]);
});
