/** What leaves this machine when the question is asked. Pure. */

import { t } from "@lingui/core/macro";
import type { Tenant } from "@/shared/api/installation";
import { joinList } from "@/shared/format/lists";
import { listRoleEngines, type Settings, splitDomains } from "./settings";

/** Providers whose models are usually served on this machine or by a server of one's own. */
const OWN_SERVERS = ["ollama", "ollama_chat", "hosted_vllm", "vllm", "lm_studio", "llamafile", "lemonade"];

/** What answers a question that names no model. `undefined` means that it is not loaded yet. */
export type Defaults = Pick<Tenant, "default_preset" | "default_engine"> | undefined;

/** Describe in one sentence what leaves this machine. */
export function describeLeaving(settings: Settings, defaults?: Defaults): string {
  if (settings.offline) return t`Nothing leaves this machine. The server rejects a model that is elsewhere.`;
  const parts = [...listModelTargets(withDefault(settings, defaults)), ...listWebTargets(settings)];
  if (settings.mcp.length > 0) parts.push(t`arguments of tools to ${joinList([...settings.mcp])}`);
  return parts.length > 0 ? t`Leaves this machine: ${parts.join(" · ")}.` : t`Nothing leaves this machine.`;
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
