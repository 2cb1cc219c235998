import { expect, test } from "vitest";
import { aPreset, aProvider, aProviderTest, aTenant } from "@/testing/builders";
import { listModelChoices, withoutRepeated } from "./models";

test("the model of a stored provider that was tested last has its provider's name once", () => {
  const tested = aProvider({ name: "lab", last_test: aProviderTest({ model: "lab/qwen" }) });
  const choices = listModelChoices({ engines: [], presets: [], providers: [tested], tenant: aTenant() });
  expect(choices.slice(1)).toMatchObject([{ engine: "litellm:lab/qwen", title: "lab/qwen" }]);
});

test("a model that was tested and is listed is one choice", () => {
  const tested = aProvider({ last_test: aProviderTest({ model: "openai/a" }) });
  const listed = { name: "litellm:openai", available: true, models: ["openai/a"], note: "", model_details: [] };
  const engines = [{ ...listed, texts: {}, offered_at: "" }];
  const choices = listModelChoices({ engines, presets: [], providers: [tested], tenant: aTenant() });
  expect(choices.slice(1).map(({ id }) => id)).toEqual(["litellm:openai/a"]);
});

test("a model is listed once, under the name that it is used by", () => {
  const [model] = Object.values(aPreset().engines).map((one) => ({ ...one, model: "lab/qwen" }));
  if (!model) throw new Error("a preset has an engine");
  const usual = aPreset({ name: "usual", engines: { all: model }, budget: {} });
  const also = aPreset({ name: "also", engines: { all: model }, budget: {} });
  const short = aPreset({ name: "short", engines: { all: model }, budget: { max_turns: 2 } });
  const listed = {
    name: "litellm:lab",
    available: true,
    models: ["lab/qwen", "lab/other"],
    note: "",
    model_details: [],
  };
  const choices = listModelChoices({
    engines: [{ ...listed, texts: {}, offered_at: "" }],
    presets: [usual, also, short],
    providers: [aProvider({ name: "lab", last_test: aProviderTest({ model: "lab/qwen" }) })],
    tenant: aTenant({ default_preset: "usual" }),
  });
  const ids = withoutRepeated(choices).map(({ id }) => id);
  expect(ids).toEqual(["default", "preset:also", "preset:short", "litellm:lab/other"]);
});

test("a preset of several roles names the roles of each model", () => {
  const [first, second] = ["lab/a", "lab/b"].map((model) => ({ ...Object.values(aPreset().engines)[0], model }));
  const engines = { all: first, writer: second } as ReturnType<typeof aPreset>["engines"];
  const preset = aPreset({ name: "two", engines, budget: {} });
  const [, choice] = listModelChoices({ engines: [], presets: [preset], providers: [], tenant: aTenant() });
  expect(choice?.note).toBe("litellm:lab/a for all other roles, litellm:lab/b for writer");
});
