/** What leaves this machine when the question is asked, and what differs from the defaults. Pure. */

import { t } from "@lingui/core/macro";
import type { Tenant } from "@/shared/api/installation";
import { collectionLabel } from "@/shared/api/library";
import { joinList } from "@/shared/format/lists";
import { DEFAULT_SETTINGS, listRoleEngines, type Settings, splitDomains } from "./settings";

/** Providers whose models are usually served on this machine or by a server of one's own. */
const OWN_SERVERS = ["ollama", "ollama_chat", "hosted_vllm", "vllm", "lm_studio", "llamafile", "lemonade"];

/** What answers a question that names no model. `undefined` means that it is not loaded yet. */
type Defaults = Pick<Tenant, "default_preset" | "default_engine"> | undefined;

/** Describe in one sentence what leaves this machine. */
export function describeLeaving(settings: Settings, defaults?: Defaults): string {
  if (settings.offline) return t`Nothing leaves this machine. The server rejects a model that is elsewhere.`;
  const parts = [...listModelTargets(withDefault(settings, defaults)), ...listWebTargets(settings)];
  if (settings.mcp.length > 0) parts.push(t`arguments of tools to ${joinList([...settings.mcp])}`);
  return parts.length > 0 ? t`Leaves this machine: ${joinList(parts)}.` : t`Nothing leaves this machine.`;
}

/** Return the settings with the model that answers by default, if they name none. */
function withDefault(settings: Settings, defaults: Defaults): Settings {
  if (!defaults || settings.preset || settings.engine.trim()) return settings;
  if (defaults.default_preset !== null) return { ...settings, preset: defaults.default_preset };
  return { ...settings, engine: defaults.default_engine };
}

function listModelTargets(settings: Settings): string[] {
  const engines = [settings.engine.trim(), ...listRoleEngines(settings).map(([, engine]) => engine)].filter(Boolean);
  const models = engines.flatMap((engine) => engine.split(/;\s*fallback\s*=\s*/));
  const providers = models
    .filter((model) => model.includes("/"))
    .map((model) => model.replace(/^litellm(\+[^:]*)?:/, "").split("/")[0] ?? "");
  const remote = [...new Set(providers.filter((provider) => !OWN_SERVERS.includes(provider)))];
  const own = providers.some((provider) => OWN_SERVERS.includes(provider));
  return [
    ...(remote.length > 0 ? [t`question and passages to ${joinList(remote)}`] : []),
    ...(own ? [t`question and passages to your own model server, if it is elsewhere`] : []),
    ...(settings.preset ? [t`question and passages to the models of the preset ${settings.preset}`] : []),
    ...(engines.length === 0 && !settings.preset
      ? [t`question and passages to the default model, if it is elsewhere`]
      : []),
  ];
}

function listWebTargets(settings: Settings): string[] {
  if (!settings.web) return [];
  const only = splitDomains(settings.onlyDomains);
  if (only.length === 0) return [t`searches and addresses of pages to the web`];
  return [t`searches to the search engines`, t`addresses of pages to ${joinList(only)}`];
}

/** List what differs from the defaults, in a few words each, without the number of turns. */
export function listDifferences(settings: Settings): string[] {
  const of = <K extends keyof Settings>(name: K) => settings[name] !== DEFAULT_SETTINGS[name];
  const roles = listRoleEngines(settings).length;
  return [
    of("graph") && settings.graph,
    of("preset") && t`preset ${settings.preset}`,
    of("engine") && settings.engine.trim(),
    roles > 0 && t`models of roles`,
    settings.collections.length > 0 && joinList(settings.collections.map(collectionLabel)),
    of("web") && (settings.onlyDomains.trim() ? t`web: ${splitDomains(settings.onlyDomains).join(", ")}` : t`web`),
    settings.web && of("excludedDomains") && t`not ${splitDomains(settings.excludedDomains).join(", ")}`,
    of("offline") && t`offline`,
    of("code") && t`code`,
    settings.mcp.length > 0 && joinList([...settings.mcp]),
    of("usd") && t`at most $${settings.usd.trim()}`,
    of("minutes") && t`at most ${settings.minutes.trim()} min`,
    of("tokens") && t`at most ${settings.tokens.trim()} tokens`,
    settings.length === "brief" && t`brief report`,
    settings.length === "standard" && t`report of standard length`,
    settings.length === "long" && t`long report`,
    of("language") && t`in ${settings.language.trim()}`,
    settings.template.trim() !== "" && t`own outline`,
    of("clarify") && t`asks first`,
    of("reviewPlan") && t`shows its plan`,
  ].filter((one) => one !== false);
}
