/** What the setup of a model says: labels of capabilities, advice for failures, and the names of presets. */

import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { Preset, ProviderTest } from "../api/providers";

export type Capability = ProviderTest["capabilities"][number];

/** Labels of the capabilities of a test, by the server's names. */
export const CAPABILITY_LABELS: Record<string, MessageDescriptor> = {
  "plain answer": msg`Answers`,
  "tool call": msg`Calls tools`,
  "JSON schema": msg`Follows a JSON schema`,
  streaming: msg`Streams its answer`,
  "reasoning tokens": msg`Reports thinking tokens`,
  usage: msg`Reports its usage`,
  "context window": msg`Context window`,
  price: msg`Price`,
};

export const OUTCOME_LABELS: Record<Capability["outcome"], MessageDescriptor> = {
  works: msg`works`,
  fails: msg`fails`,
  unknown: msg`unknown`,
  "not tested": msg`not tested`,
};

const ADVICE: Record<string, MessageDescriptor> = {
  authentication_failed: msg`The provider rejects the key. Create a new one on the provider’s page, and store it again.`,
  model_unavailable: msg`The provider does not have this model, or not for your account. Choose another model.`,
  overloaded: msg`The server cannot be reached or has an error. Check that it is running at this address, then test again.`,
  timeout: msg`The server takes too long. Test again once the model is loaded, or choose a smaller model.`,
  rate_limited: msg`The provider limits the calls of this account. Check the balance of the account, or test again in a minute.`,
  bad_request: msg`The server rejects the request. Check the address and the name of the model.`,
};

/** Return whether the tested model answers at all. Without that, nothing else is tested. */
export function answers(test: ProviderTest): boolean {
  return test.capabilities[0]?.outcome === "works";
}

/** Return what to do about a model that does not answer. `null` means that its details say it. */
export function adviceFor(test: ProviderTest): MessageDescriptor | null {
  return ADVICE[test.capabilities[0]?.cause ?? ""] ?? null;
}

/** Names of the built-in presets. A preset of the tenant with such a name would replace it. */
const BUILT_IN_NAMES = new Set(["fast", "thorough", "local"]);
const MAX_NAME_CHARS = 64;

/** Return a name for the preset of one model: that of the model, unless another preset has it. Pure. */
export function presetNameOf(provider: string, model: string, presets: readonly Preset[]): string {
  const own = toName(model.split("/").at(-1) ?? model);
  const holder = presets.find(({ name }) => name === own);
  const isFree = own !== "" && !BUILT_IN_NAMES.has(own) && (!holder || answersAll(holder, `${provider}/${model}`));
  return isFree ? own : toName(`${provider}-${model}`);
}

/** Return whether a preset names this model for all roles, and nothing else. */
export function answersAll(preset: Preset, model: string): boolean {
  const { all, ...others } = preset.engines;
  return all?.model === model && Object.keys(others).length === 0;
}

function toName(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9_.-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, MAX_NAME_CHARS);
}
