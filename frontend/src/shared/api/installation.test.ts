import { expect, test } from "vitest";
import { parseEngineConfig } from "@/shared/api/installation";

test("limits and the reasoning effort of an engine are settings after its model", () => {
  const written = "litellm+text:openai/o3-mini;reasoning_effort=low;max_tokens=9000;library=lessons@1";
  expect(parseEngineConfig(written)).toEqual({
    engine: "litellm",
    model: "openai/o3-mini",
    prompt_format: "text",
    prompt_library: "lessons@1",
    reasoning_effort: "low",
    max_tokens: 9000,
    api_base: "",
    options: {},
  });
});

test("without settings, the limits are left to the model and the role", () => {
  const config = parseEngineConfig("litellm:ollama/qwen:7b");
  expect(config.model).toBe("ollama/qwen:7b");
  expect("max_tokens" in config || "timeout_seconds" in config).toBe(false);
});

test("what cannot be understood is sent, so that the server rejects it", () => {
  expect(parseEngineConfig("litellm:openai/m;max_tokens=many").max_tokens).toBe("many");
  expect(parseEngineConfig("litellm:openai/m;effort=low").model).toBe("openai/m;effort=low");
});

test("the settings after a fallback are its own", () => {
  const config = parseEngineConfig("litellm:openai/a;max_tokens=9;fallback=groq/b;max_tokens=7;fallback=litellm:xai/c");
  expect([config.model, config.max_tokens]).toEqual(["openai/a", 9]);
  const fallbacks = (config.fallbacks ?? []).map((one) => [one.engine, one.model, one.max_tokens]);
  expect(fallbacks).toEqual([
    ["litellm", "groq/b", 7],
    ["litellm", "xai/c", undefined],
  ]);
  expect("fallbacks" in parseEngineConfig("litellm:openai/a")).toBe(false);
});
