import { expect, test } from "vitest";
import type { Preset } from "@/shared/api/providers";
import { describeAnswerers, describeTechnically } from "@/shared/runs/answerers";
import { aRun } from "@/testing/builders";
import { findPresetName } from "./preset-of-run";

const config = (model: string, engine = "litellm") => ({ engine, model }) as never;
const preset = (name: string, engines: Record<string, unknown>) => ({ name, engines }) as Preset;

test("a run is described by its models, and without one as such; the technical names are apart", () => {
  const mini = { planner: config("openai/gpt-5-mini"), writer: config("openai/gpt-5-mini") };
  expect(describeAnswerers(mini)).toBe("gpt-5-mini");
  expect(describeAnswerers({ ...mini, writer: config("groq/llama") })).toBe("gpt-5-mini, llama");
  expect(describeAnswerers({ planner: config("", "extractive") })).toBe("Without a model");
  expect(describeTechnically(aRun({ engines: { planner: config("", "extractive") } }))).toBe("agentflow · extractive");
});

test("a run has the name of the preset whose models its roles have", () => {
  const run = aRun({ engines: { planner: config("a/one"), writer: config("a/two") } });
  const presets = [
    preset("other", { all: config("a/one") }),
    preset("mine", { all: config("a/one"), writer: config("a/two") }),
  ];
  expect(findPresetName(run, presets)).toBe("mine");
  expect(findPresetName(run, presets.slice(0, 1))).toBeUndefined();
  expect(findPresetName(aRun({ engines: { planner: config("", "extractive") } }), presets)).toBeUndefined();
});
