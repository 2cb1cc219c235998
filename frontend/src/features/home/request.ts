/** Converts a draft of the composer into a request. Pure. */

import { plural } from "@lingui/core/macro";
import { depthOfTurns } from "@/shared/api/depth";
import { type Graph, parseEngineConfig } from "@/shared/api/installation";
import { collectionLabel } from "@/shared/api/library";
import type { RunRequest } from "@/shared/api/runs";
import { joinList } from "@/shared/format/lists";
import { listRoleEngines, type Settings, splitDomains } from "./settings";
import { type AttachedDocuments, MAX_SOURCES, validateSingles } from "./validation";

/** What a request needs beyond the form. */
export interface RequestParts {
  /** The graphs of the installation. May be empty if no engine is selected. */
  graphs: readonly Graph[];
  /** The stored tool policy of the selected name. `null` means the default. */
  toolPolicy: NonNullable<RunRequest["tool_policy"]> | null;
}

export interface QuestionDraft extends Settings {
  question: string;
  /** Ids of the documents attached to this question. They replace collections. */
  sources: readonly string[];
  /** Collections that contain them. */
  attachedTo: readonly string[];
  /** Names of the attached documents that are in no collection. */
  singles: readonly string[];
}

/** Describe what the run reads if documents are attached. `null` means that none are attached. */
export function describeAttached(attached: AttachedDocuments): string | null {
  const { sources, attachedTo } = attached;
  if (sources.length === 0) return null;
  if (sources.length <= MAX_SOURCES) {
    return plural(sources.length, {
      one: "Reads only the # document you attached.",
      other: "Reads only the # documents you attached.",
    });
  }

  const names = joinList(attachedTo.map(collectionLabel));
  return (
    validateSingles(attached) ??
    plural(attachedTo.length, {
      one: `Reads the collection ${names}, with all of its documents.`,
      other: `Reads the collections ${names}, with all of their documents.`,
    })
  );
}

function parseLimit(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

/**
 * Build the request for a run. The graphs are only used if an engine is selected: the engine answers every role of the
 * graph that has no engine of its own.
 */
export function buildRunRequest(draft: QuestionDraft, { graphs, toolPolicy }: RequestParts): RunRequest {
  return {
    question: draft.question.trim(),
    ...buildSettings(draft, graphs),
    ...(toolPolicy ? { tool_policy: toolPolicy } : {}),
    seed: 0,
  };
}

type RequestSettings = Omit<RunRequest, "question" | "seed" | "tool_policy">;

/**
 * Build the part of a request that the settings determine, which is also what a question preset contains. The tool
 * policy is not part of it: the form has its name, and a request its rules.
 */
export function buildSettings(draft: Settings & AttachedDocuments, graphs: readonly Graph[]): RequestSettings {
  const interactions = [
    ...(draft.clarify ? (["clarify"] as const) : []),
    ...(draft.reviewPlan ? (["plan_review"] as const) : []),
  ];
  const style = buildStyle(draft);
  return {
    graph: draft.graph,
    ...(draft.preset ? { preset: draft.preset } : {}),
    budget: buildBudget(draft),
    engines: buildEngines(draft, graphs),
    scope: buildScope(draft),
    ...(style ? { report_style: style } : {}),
    interactions,
  };
}

/** A limit that is not set is left out, so that the limit of a preset applies. */
function buildBudget(settings: Settings): NonNullable<RunRequest["budget"]> {
  const limits = { usd: parseLimit(settings.usd), minutes: parseLimit(settings.minutes) };
  const tokens = parseLimit(settings.tokens);
  return {
    depth: depthOfTurns(settings.turns),
    max_turns: settings.turns,
    ...(limits.usd === null ? {} : { max_cost_usd: limits.usd }),
    ...(limits.minutes === null ? {} : { max_seconds: limits.minutes * 60 }),
    ...(tokens === null ? {} : { max_tokens: tokens }),
  };
}

function buildEngines(settings: Settings, graphs: readonly Graph[]): RunRequest["engines"] {
  const roles = graphs.find((graph) => graph.name === settings.graph)?.roles ?? [];
  const common = settings.engine.trim() ? roles.map((role): [string, string] => [role, settings.engine]) : [];
  const engines = [...common, ...listRoleEngines(settings)];
  return Object.fromEntries(engines.map(([role, engine]) => [role, parseEngineConfig(engine)]));
}

/** Domains without the web are left out. */
function buildScope(draft: Settings & AttachedDocuments): NonNullable<RunRequest["scope"]> {
  const only = splitDomains(draft.onlyDomains);
  const excluded = splitDomains(draft.excludedDomains);
  return {
    ...documentScope(draft),
    web: draft.web,
    mcp: [...draft.mcp],
    code: draft.code,
    only_domains: draft.web ? only : [],
    excluded_domains: draft.web ? excluded : [],
    offline: draft.offline,
  };
}

function buildStyle(settings: Settings): RunRequest["report_style"] {
  const style = {
    length: settings.length || null,
    language: settings.language.trim() || null,
    template: settings.template.trim(),
  };
  return style.length || style.language || style.template ? style : null;
}

/** Attached documents come first. If they exceed the maximum of a scope, their collections are named instead. */
function documentScope(draft: Settings & AttachedDocuments): { collections: string[]; sources: string[] } {
  if (draft.sources.length > MAX_SOURCES) return { collections: [...draft.attachedTo], sources: [] };
  if (draft.sources.length > 0) return { collections: [], sources: [...draft.sources] };
  return { collections: [...draft.collections], sources: [] };
}
