import { expect, test } from "vitest";
import { aModel, aPreset } from "@/testing/builders";
import { engineText, listEngineTexts, toEngineConfig } from "./engine-text";
import { listLocalServers } from "./local-servers";
import { sortSuggested } from "./model-choice";
import { presetNameOf } from "./setup-text";

test("the preset of a model has its name, unless that is taken or built in", () => {
  expect(presetNameOf("openai", "gpt-5-mini", [])).toBe("gpt-5-mini");
  expect(presetNameOf("openai", "gpt-5-mini", [aPreset()])).toBe("gpt-5-mini");
  expect(presetNameOf("openrouter", "openai/gpt-5-mini", [aPreset()])).toBe("openrouter-openai-gpt-5-mini");
  expect(presetNameOf("ollama_chat", "Qwen3:8b", [])).toBe("qwen3-8b");
  expect(presetNameOf("mine", "fast", [])).toBe("mine-fast");
  expect(presetNameOf("mine", "模型", [])).toBe("mine");
  expect(presetNameOf("mine", "模型", [aPreset({ name: "mine" })])).toBe("mine-2");
});

test("a model is written without its engine, and read with the settings that it had", () => {
  const stored = { ...toEngineConfig("openai/gpt-5-mini"), reasoning_effort: "low" as const };
  expect(engineText(stored)).toBe("openai/gpt-5-mini");
  expect(toEngineConfig("openai/gpt-5-mini", stored)).toBe(stored);
  expect(toEngineConfig("ollama_chat/qwen3:8b", stored)).toMatchObject({
    engine: "litellm",
    model: "ollama_chat/qwen3:8b",
  });
  expect(toEngineConfig("extractive")).toMatchObject({ engine: "extractive", model: "" });
  expect(toEngineConfig("policy:small@1")).toMatchObject({ engine: "policy", model: "small@1" });
});

const engine = { note: "", texts: {}, model_details: [], offered_at: "" };

test("engines without models are options by name, and those that cannot answer are none", () => {
  const engines = [
    { ...engine, name: "extractive", available: true, models: [] },
    { ...engine, name: "litellm:openai", available: true, models: ["openai/a"] },
    { ...engine, name: "litellm:groq", available: false, models: ["groq/b"] },
  ];
  expect(listEngineTexts(engines)).toEqual(["extractive", "openai/a"]);
});

test("servers on the machine are listed by what they need, and services are not", () => {
  const engines = [
    { ...engine, name: "litellm:openai", available: true, models: ["openai/a"] },
    { ...engine, name: "litellm:ollama_chat", available: true, models: ["ollama_chat/qwen3:8b"] },
    { ...engine, name: "litellm:lm_studio", available: false, models: [], offered_at: "http://127.0.0.1:1234" },
  ];
  expect(listLocalServers(engines)).toEqual([
    { provider: "ollama_chat", models: ["qwen3:8b"], offeredAt: "" },
    { provider: "lm_studio", models: [], offeredAt: "http://127.0.0.1:1234" },
  ]);
});

test("suggested models come first, in their order", () => {
  const models = ["a", "b", "c"].map((name) => aModel({ name }));
  expect(sortSuggested(models, ["c", "missing", "b"]).map(({ name }) => name)).toEqual(["c", "b", "a"]);
});
