import { expect, test } from "vitest";
import { aProvider, aProviderTest, aTenant } from "@/testing/builders";
import { listModelChoices } from "./models";

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
