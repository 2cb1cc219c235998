/** Converts a draft of the composer into a request. Pure. */

import { plural, t } from "@lingui/core/macro";
import { depthOfTurns } from "@/shared/api/depth";
import { type Graph, parseEngineConfig } from "@/shared/api/installation";
import { collectionLabel } from "@/shared/api/library";
import type { RunRequest } from "@/shared/api/runs";
import { joinList } from "@/shared/format/lists";
import { formatCount } from "@/shared/format/numbers";

export interface QuestionDraft {
  question: string;
  turns: number;
  /** As typed. Empty means no limit. */
  usd: string;
  minutes: string;
  graph: string;
  /** `extractive` or `litellm:provider/model`. Empty means the default of the installation. */
  engine: string;
  collections: readonly string[];
  /** Ids of the documents attached to this question. They replace collections. */
  sources: readonly string[];
  /** Collections that contain them. */
  attachedTo: readonly string[];
  /** Names of the attached documents that are in no collection. */
  singles: readonly string[];
  /** The run may search the web and read public pages. */
  web: boolean;
  /** MCP servers whose tools the run may use. */
  mcp: readonly string[];
  code: boolean;
}

/** Maximum number of sources in a scope. */
const MAX_SOURCES = 1000;

/** Return what must be changed before the question can be asked. `null` means that the draft is valid. */
export function validateDraft(draft: QuestionDraft): string | null {
  if (draft.question.trim().length < 3) return t`Enter a question of at least three characters.`;
  if (draft.question.length > 8000)
    return t`Shorten the question to at most 8,000 characters. Put the rest into a document.`;
  if (!isValidLimit(draft.usd))
    return t`Enter the maximum cost as a number of dollars, such as 2.50, or leave it empty.`;
  if (!isValidLimit(draft.minutes))
    return t`Enter the maximum time as a number of minutes above zero, or leave it empty.`;
  return validateSingles(draft);
}

type AttachedDocuments = Pick<QuestionDraft, "sources" | "attachedTo" | "singles">;

/**
 * If more documents are attached than a scope may name, the scope names their collections. Documents in no collection
 * would be left out.
 */
function validateSingles({ sources, singles }: AttachedDocuments): string | null {
  if (sources.length <= MAX_SOURCES || singles.length === 0) return null;
  const rest = singles.length > 3 ? [t`${formatCount(singles.length - 3)} more`] : [];

  const names = joinList([...singles.slice(0, 3), ...rest]);
  return plural(singles.length, {
    one: `More than 1,000 documents are attached, so the run reads whole folders, but ${names} is in no folder. Choose Clear, move it into a folder, and add the folders again.`,
    other: `More than 1,000 documents are attached, so the run reads whole folders, but ${names} are in no folder. Choose Clear, move them into a folder, and add the folders again.`,
  });
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

function isValidLimit(text: string): boolean {
  return text.trim() === "" || Number(text) > 0;
}

function parseLimit(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

/** Return why the selected engine cannot be used with the selected graph. `null` means that it can. */
export function validateEngine(draft: QuestionDraft, graphs: readonly Graph[]): string | null {
  if (!draft.engine.trim()) return null;
  const graph = graphs.find(({ name }) => name === draft.graph);
  if (!graph) return t`The graph ${draft.graph} is not available in this installation. Select another graph.`;
  if (graph.roles.length > 0) return null;
  return t`The graph ${graph.title || graph.name} has no roles, so no engine can be selected for it. Clear the field “Engine”.`;
}

/**
 * Build the request for a run. `graphs` is only used if an engine is selected: the engine answers every role of the
 * graph.
 */
export function buildRunRequest(draft: QuestionDraft, graphs: readonly Graph[]): RunRequest {
  const roles = graphs.find((graph) => graph.name === draft.graph)?.roles ?? [];
  const minutes = parseLimit(draft.minutes);
  return {
    question: draft.question.trim(),
    graph: draft.graph,
    budget: {
      depth: depthOfTurns(draft.turns),
      max_turns: draft.turns,
      max_cost_usd: parseLimit(draft.usd),
      max_seconds: minutes === null ? null : minutes * 60,
    },
    engines: draft.engine.trim()
      ? Object.fromEntries(roles.map((role) => [role, parseEngineConfig(draft.engine)]))
      : {},
    scope: { ...documentScope(draft), web: draft.web, mcp: [...draft.mcp], code: draft.code },
    seed: 0,
  };
}

/** Attached documents come first. If they exceed the maximum of a scope, their collections are named instead. */
function documentScope(draft: QuestionDraft): { collections: string[]; sources: string[] } {
  if (draft.sources.length > MAX_SOURCES) return { collections: [...draft.attachedTo], sources: [] };
  if (draft.sources.length > 0) return { collections: [], sources: [...draft.sources] };
  return { collections: [...draft.collections], sources: [] };
}
