/** Converts the settings of the form to those of a question preset, and back. Pure. */

import type { QuestionPreset, QuestionSettings } from "@/shared/api/asking";
import { formatEngineConfig, type Graph } from "@/shared/api/installation";
import { buildSettings } from "./request";
import { DEFAULT_SETTINGS, type Settings } from "./settings";

/**
 * Return the settings to save. Documents that are attached to a question are not part of them. The tool policy is saved
 * by its name, so that a question has the rules that it has when it is asked.
 */
export function toPreset(settings: Settings, graphs: readonly Graph[]): QuestionSettings {
  const saved = buildSettings({ ...settings, sources: [], attachedTo: [], singles: [] }, graphs);
  return { ...saved, tool_policy: settings.toolPolicy } as QuestionSettings;
}

/**
 * Return the settings of the form that a preset stands for. `toolPolicy` is the selected one, which stays if the preset
 * says nothing about it.
 */
export function fromPreset(
  saved: QuestionPreset["settings"],
  graphs: readonly Graph[],
  toolPolicy: Settings["toolPolicy"],
): Settings {
  const { budget, scope, report_style: style, interactions = [] } = saved;
  return {
    ...DEFAULT_SETTINGS,
    ...readEngines(saved, graphs),
    graph: saved.graph,
    preset: saved.preset ?? "",
    turns: budget.max_turns,
    usd: formatLimit(budget.max_cost_usd),
    minutes: formatLimit(budget.max_seconds == null ? null : budget.max_seconds / 60),
    tokens: formatLimit(budget.max_tokens),
    collections: scope.collections ?? [],
    web: scope.web ?? false,
    onlyDomains: (scope.only_domains ?? []).join(", "),
    excludedDomains: (scope.excluded_domains ?? []).join(", "),
    offline: scope.offline ?? false,
    mcp: scope.mcp ?? [],
    code: scope.code ?? false,
    toolPolicy: saved.tool_policy ?? toolPolicy,
    length: style?.length ?? "",
    language: style?.language ?? "",
    template: style?.template ?? "",
    clarify: interactions.includes("clarify"),
    reviewPlan: interactions.includes("plan_review"),
  };
}

function formatLimit(limit: number | null | undefined): string {
  return limit == null ? "" : String(limit);
}

/** The engine that most roles of the graph have becomes that of all roles. The others become engines of single roles. */
function readEngines(saved: QuestionPreset["settings"], graphs: readonly Graph[]): Partial<Settings> {
  const engines = Object.entries(saved.engines ?? {}).map(([role, config]) => [role, formatEngineConfig(config)]);
  const roles = graphs.find(({ name }) => name === saved.graph)?.roles ?? [];
  const named = new Map(engines as [string, string][]);
  const counts = new Map<string, number>();
  for (const role of roles) counts.set(named.get(role) ?? "", (counts.get(named.get(role) ?? "") ?? 0) + 1);
  const isComplete = roles.length > 0 && roles.every((role) => named.has(role));
  const engine = isComplete ? ([...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "") : "";
  return { engine, roleEngines: Object.fromEntries([...named].filter(([, one]) => one !== engine)) };
}
