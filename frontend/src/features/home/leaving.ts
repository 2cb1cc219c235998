/** What leaves this machine when the question is asked. Pure. */

import { t } from "@lingui/core/macro";
import type { Tenant } from "@/shared/api/installation";
import type { Preset, Provider } from "@/shared/api/providers";
import { joinList } from "@/shared/format/lists";
import { isLoopback } from "@/shared/format/loopback";
import { listRoleEngines, type Settings, splitDomains } from "./settings";

/** Providers whose models are usually served on this machine or by a server of one's own. */
const OWN_SERVERS = ["ollama", "ollama_chat", "hosted_vllm", "vllm", "lm_studio", "llamafile", "lemonade"];

/** What answers a question that names no model. `undefined` means that it is not loaded yet. */
export type Defaults = Pick<Tenant, "default_preset" | "default_engine"> | undefined;

type EngineOfPreset = Preset["engines"][string];

/** What the page has loaded about models. `undefined` means that it is not loaded. */
export interface KnownModels {
  providers?: readonly Pick<Provider, "name" | "provider" | "api_base">[] | undefined;
  presets?: readonly Pick<Preset, "name" | "engines">[] | undefined;
}

/** Describe in one sentence what leaves this machine. */
export function describeLeaving(settings: Settings, defaults?: Defaults, known: KnownModels = {}): string {
  if (settings.offline) return t`Nothing leaves this machine. The server rejects a model that is elsewhere.`;
  const parts = [...listModelTargets(withDefault(settings, defaults), known), ...listWebTargets(settings)];
  if (settings.mcp.length > 0) parts.push(t`arguments of tools to ${joinList([...settings.mcp])}`);
  return parts.length > 0 ? t`Leaves this machine: ${parts.join(" · ")}.` : t`Nothing leaves this machine.`;
}

/** Return the settings with the model that answers by default, if they name none. */
function withDefault(settings: Settings, defaults: Defaults): Settings {
  if (!defaults || settings.preset || settings.engine.trim()) return settings;
  if (defaults.default_preset !== null) return { ...settings, preset: defaults.default_preset };
  return { ...settings, engine: defaults.default_engine };
}

function listModelTargets(settings: Settings, { providers, presets }: KnownModels): string[] {
  const named = [settings.engine.trim(), ...listRoleEngines(settings).map(([, engine]) => engine)].filter(Boolean);
  // Roles that a preset does not name are answered by another engine, so such a preset tells only a part.
  const preset = presets?.find(({ name, engines }) => name === settings.preset && engines.all);
  const models = [...named.flatMap(listModels), ...(preset ? Object.values(preset.engines).flatMap(listConfigs) : [])];
  const places = models.map((model) => findPlace(model, providers));
  const remote = listNames(places, "remote");
  const unknown = listNames(places, "unknown");
  const own = places.some(({ kind }) => kind === "own");
  return [
    ...(remote.length > 0 ? [t`question and passages to ${joinList(remote)}`] : []),
    ...(unknown.length > 0 ? [t`question and passages to the model ${joinList(unknown)}, if it is elsewhere`] : []),
    ...(own ? [t`question and passages to your own model server, if it is elsewhere`] : []),
    ...(settings.preset && !preset
      ? [t`question and passages to the models of the preset ${settings.preset}, if they are elsewhere`]
      : []),
    ...(named.length === 0 && !settings.preset
      ? [t`question and passages to the default model, if it is elsewhere`]
      : []),
  ];
}

interface Model {
  /** `provider/model`. */
  name: string;
  /** Address of its server. Empty means that of its provider. */
  address: string;
}

/** Return the models of an engine as it is typed, and of its fallbacks. */
function listModels(engine: string): Model[] {
  return engine
    .split(/;\s*fallback\s*=\s*/)
    .map((text) => text.replace(/^litellm(\+[^:]*)?:/, "").replace(/;.*$/, ""))
    .filter((name) => name.includes("/"))
    .map((name) => ({ name, address: "" }));
}

/** Return the models of an engine of a preset, and of its fallbacks. */
function listConfigs({ engine, model, api_base: address, fallbacks }: EngineOfPreset): Model[] {
  const own = engine === "litellm" && model.includes("/") ? [{ name: model, address }] : [];
  return [...own, ...(fallbacks ? fallbacks : []).flatMap(listConfigs)];
}

interface Place {
  /** `own`: probably a server of one's own, whose address is not known. */
  kind: "local" | "remote" | "own" | "unknown";
  /** What is named to the person: the provider, or the model if its provider may have any address. */
  name: string;
}

/** Return where a model is. Until the stored providers are loaded, a name says nothing about the address. */
function findPlace(model: Model, providers: KnownModels["providers"]): Place {
  const [name = ""] = model.name.split("/");
  const stored = providers?.find((provider) => provider.name === name);
  const address = model.address || stored?.api_base;
  if (address) return { kind: isLoopbackAddress(address) ? "local" : "remote", name };
  if (OWN_SERVERS.includes(stored?.provider ?? name)) return { kind: "own", name };
  return providers ? { kind: "remote", name } : { kind: "unknown", name: model.name };
}

function isLoopbackAddress(address: string): boolean {
  return URL.canParse(address) && isLoopback(new URL(address).hostname);
}

function listNames(places: readonly Place[], kind: Place["kind"]): string[] {
  return [...new Set(places.filter((place) => place.kind === kind).map(({ name }) => name))];
}

function listWebTargets(settings: Settings): string[] {
  if (!settings.web) return [];
  const only = splitDomains(settings.onlyDomains);
  if (only.length === 0) return [t`searches and addresses of pages to the web`];
  return [t`searches to the search engines`, t`addresses of pages to ${joinList(only)}`];
}
