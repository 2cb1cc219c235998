/** The models that a question can be asked with, each with what is known about it. Pure. */

import { t } from "@lingui/core/macro";
import { type Engine, formatEngineConfig, type Tenant } from "@/shared/api/installation";
import type { Preset, Provider } from "@/shared/api/providers";
import { joinList, joinParts } from "@/shared/format/lists";
import { formatCompact, formatCount, formatDecimal, formatDuration, formatUsd } from "@/shared/format/numbers";
import { offerText } from "@/shared/texts/offer-texts";

export interface ModelChoice {
  /** `default`, `preset:NAME`, or the engine in the notation of the form. */
  id: string;
  preset: string;
  engine: string;
  title: string;
  /** What it is, in a few words. */
  note: string;
  /** Context, price and others, as far as they are known. */
  facts: string[];
  /** Turns that a preset of engines sets. `null` means that it sets none. */
  turns: number | null;
  /** Ids of choices that are the same as this one. A list shows each model once. */
  repeats?: readonly string[];
}

interface Sources {
  engines: readonly Engine[];
  presets: readonly Preset[];
  providers: readonly Provider[];
  tenant: Pick<Tenant, "default_preset" | "default_engine">;
}

/** List the choices: the default, presets, engines without a model, and models; those of one's own servers first. */
export function listModelChoices({ engines, presets, providers, tenant }: Sources): ModelChoice[] {
  const usable = engines.filter(({ available }) => available);
  const models = usable.flatMap((engine) => (engine.models.length > 0 ? listModels(engine) : [engineChoice(engine)]));
  const stored = providers.flatMap(storedModel).filter((one) => !models.some(({ id }) => id === one.id));
  return [defaultChoice(tenant, presets), ...presets.map(presetChoice), ...stored, ...models];
}

/** Return the choices without those that another one repeats: each model once, under the name that it is used by. */
export function withoutRepeated(choices: readonly ModelChoice[]): ModelChoice[] {
  const repeated = new Set(choices.flatMap(({ repeats = [] }) => repeats));
  return choices.filter(({ id }) => !repeated.has(id));
}

/** Return the choices whose title, note or id contain every word. */
export function filterChoices(choices: readonly ModelChoice[], search: string): ModelChoice[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const text = ({ id, title, note }: ModelChoice) => `${id} ${title} ${note}`.toLowerCase();
  return choices.filter((choice) => words.every((word) => text(choice).includes(word)));
}

/** Return the choice that the settings name. One that is in no list stays possible. */
export function findChoice(choices: readonly ModelChoice[], preset: string, engine: string): ModelChoice {
  const written = engine.trim();
  const id = preset ? `preset:${preset}` : written || "default";
  return (
    choices.find((choice) => choice.id === id) ?? {
      id,
      preset,
      engine: written,
      title: preset || written,
      facts: [],
      turns: null,
      note: t`Not in the list. The server checks it when you ask.`,
    }
  );
}

/** What answers a question that names nothing: the default preset, otherwise the engine of the installation. */
function defaultChoice(tenant: Sources["tenant"], presets: readonly Preset[]): ModelChoice {
  const preset = presets.find(({ name }) => name === tenant.default_preset);
  const chosen = preset ? presetChoice(preset) : null;
  const note = chosen ? chosen.note : t`Engine of this installation: ${tenant.default_engine}`;
  const title = tenant.default_preset === null ? t`Default` : t`Default: ${tenant.default_preset}`;
  return {
    id: "default",
    preset: "",
    engine: "",
    title,
    note,
    facts: chosen?.facts ?? [],
    turns: chosen?.turns ?? null,
    repeats: chosen
      ? [chosen.id, ...(chosen.repeats ?? [])]
      : tenant.default_engine.includes(":")
        ? [tenant.default_engine]
        : [],
  };
}

function presetChoice({ name, engines, budget, built_in: isBuiltIn }: Preset): ModelChoice {
  const named = Object.entries(engines).map(([role, config]) => [role, formatEngineConfig(config)] as const);
  const models = [...new Set(named.map(([, model]) => model))];
  const isOneForAll = named.length === 1 && named[0]?.[0] === "all";
  const limits = [
    ...(budget.max_cost_usd == null ? [] : [t`at most ${formatUsd(budget.max_cost_usd)}`]),
    ...(budget.max_seconds == null ? [] : [t`at most ${formatDuration(budget.max_seconds)}`]),
    ...(budget.max_tokens == null ? [] : [t`at most ${formatCompact(budget.max_tokens)} tokens`]),
    ...(budget.max_turns == null ? [] : [t`${formatCount(budget.max_turns)} turns`]),
  ];
  return {
    id: `preset:${name}`,
    preset: name,
    engine: "",
    title: isBuiltIn ? t`Preset ${name}` : t`Your preset ${name}`,
    note: isOneForAll ? joinList(models) : joinParts(models.map((model) => describeRoles(model, named))),
    facts: limits,
    turns: budget.max_turns ?? null,
    repeats: isOneForAll && limits.length === 0 ? models : [],
  };
}

/** Return a model with the roles that it answers. */
function describeRoles(model: string, named: readonly (readonly [role: string, model: string])[]): string {
  const roles = named.filter((one) => one[1] === model).map(([role]) => (role === "all" ? t`all other roles` : role));
  return t`${model} for ${joinList(roles)}`;
}

function engineChoice({ name, note, texts }: Engine): ModelChoice {
  const about = offerText(note, texts.note);
  return { id: name, preset: "", engine: name, title: name, note: about, facts: [], turns: null };
}

function listModels({ name, models, model_details: details = [], note, texts }: Engine): ModelChoice[] {
  const [engine = name] = name.split(":");
  return models.map((model) => {
    const known = details.find((one) => one.model === model);
    return {
      id: `${engine}:${model}`,
      preset: "",
      engine: `${engine}:${model}`,
      title: model,
      note: known ? "" : offerText(note, texts.note),
      facts: known ? describeModel(known) : [],
      turns: null,
    };
  });
}

/** The model of a stored provider that was tested last. Its others can be typed. */
function storedModel({ name, last_test: test }: Provider): ModelChoice[] {
  if (!test) return [];
  // The model that was tested already begins with the provider's name.
  const engine = `litellm:${test.model}`;
  const note = t`Model of your provider ${name} that was tested last`;
  return [{ id: engine, preset: "", engine, title: test.model, note, facts: [], turns: null }];
}

type ModelDetails = NonNullable<Engine["model_details"]>[number];

function describeModel({ context_tokens: context, input_usd: input, output_usd: output }: ModelDetails): string[] {
  return [
    ...(context === null ? [] : [t`${formatCompact(context)} tokens of context`]),
    ...(input === null || output === null
      ? [t`price unknown`]
      : [t`$${formatPrice(input)} in and $${formatPrice(output)} out per million tokens`]),
  ];
}

function formatPrice(usd: number): string {
  return formatDecimal(usd, usd > 0 && usd < 1 ? 3 : 2);
}
