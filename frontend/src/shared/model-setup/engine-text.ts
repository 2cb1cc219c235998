/** Engine configs as people write and read them: `openai/gpt-5-mini`, `extractive`, `policy:small@1`. Pure. */

import { type Engine, type EngineConfig, parseEngineConfig } from "../api/installation";
import type { Preset } from "../api/providers";

/** Return the engine and model of a config. The provider's model stands alone; other settings are left out. */
export function engineText({ engine = "extractive", model = "" }: Partial<EngineConfig>): string {
  if (engine === "litellm") return model;
  return model ? `${engine}:${model}` : engine;
}

/**
 * Return the config of a text. `before` is the config that the text replaces: if it names the same engine, its other
 * settings stay.
 */
export function toEngineConfig(text: string, before?: EngineConfig): EngineConfig {
  const named = text.trim();
  if (before && engineText(before) === named) return before;
  const isModel = /^[a-z0-9][a-z0-9_.-]*\//.test(named);
  return parseEngineConfig(isModel ? `litellm:${named}` : named);
}

/** Return the name of a preset with the model that answers most roles. */
export function describePreset({ name, engines }: Preset): string {
  const model = engines.all ? engineText(engines.all) : "";
  return model && !model.endsWith(name) ? `${name}: ${model}` : name;
}

/** Return the engines and models that can answer now, in the notation of `engineText`. */
export function listEngineTexts(engines: readonly Engine[]): string[] {
  return engines
    .filter(({ available }) => available)
    .flatMap(({ name, models }) => {
      const [engine = name] = name.split(":");
      return models.length === 0 ? [engine] : models.map((model) => engineText({ engine, model }));
    })
    .filter((text) => text !== "litellm");
}
