/** From what the composer holds to what the server is asked. Pure. */

import { type Engine, engineChoice, type Graph } from "@/shared/api/catalog";
import { collectionName } from "@/shared/api/library";
import type { RunRequest } from "@/shared/api/runs";
import { count, counted } from "@/shared/format/numbers";
import { listed } from "@/shared/format/words";

export interface Draft {
  question: string;
  turns: number;
  /** As typed. Empty: no limit. */
  usd: string;
  minutes: string;
  graph: string;
  /** `extractive` or `litellm:provider/model`. Empty: the installation's default. */
  engine: string;
  collections: readonly string[];
  /** Documents that were attached to this question; they take the place of collections. */
  sources: readonly string[];
  /** The collections that hold them. */
  attachedTo: readonly string[];
  /** Names of those that no collection holds. */
  singles: readonly string[];
  /** The run may search the web and read public pages. */
  web: boolean;
  /** MCP servers whose tools it may use. */
  mcp: readonly string[];
  code: boolean;
}

/** Maximum number of sources that a scope may name. */
const MAX_SOURCES = 1000;

/** What must be changed before asking. null: nothing. */
export function complaint(draft: Draft): string | null {
  if (draft.question.trim().length < 3) return "Write a question of at least three characters.";
  if (draft.question.length > 8000) return "Shorten the question to 8,000 characters; put the rest in a document.";
  if (!isLimit(draft.usd)) return "Give the spending limit as a number of dollars, such as 2.50, or leave it empty.";
  if (!isLimit(draft.minutes)) return "Give the time limit as a number of minutes above zero, or leave it empty.";
  return singlesComplaint(draft);
}

type Attached = Pick<Draft, "sources" | "attachedTo" | "singles">;

/** More documents than a scope may name are named by their collections, which leaves out what is in none. */
function singlesComplaint({ sources, singles }: Attached): string | null {
  if (sources.length <= MAX_SOURCES || singles.length === 0) return null;
  const more = singles.length > 3 ? [`${count(singles.length - 3)} more`] : [];
  const one = singles.length === 1;
  return (
    `More than 1,000 documents are attached, so the run reads them by their folders, and ` +
    `${listed([...singles.slice(0, 3), ...more])} ${one ? "is" : "are"} in none. ` +
    `Choose Clear, put ${one ? "it" : "them"} into a folder, and add the folders again.`
  );
}

/** What of the library the run will read where documents are attached. `null`: none is attached. */
export function attachedWords(attached: Attached): string | null {
  const { sources, attachedTo } = attached;
  if (sources.length === 0) return null;
  if (sources.length <= MAX_SOURCES) return `Reads only the ${counted(sources.length, "document")} you attached.`;
  const [one, several] = ["with everything that it holds", "with everything that they hold"];
  const named = listed(attachedTo.map(collectionName));
  return (
    singlesComplaint(attached) ??
    (attachedTo.length === 1 ? `Reads the collection ${named}, ${one}.` : `Reads the collections ${named}, ${several}.`)
  );
}

function isLimit(text: string): boolean {
  return text.trim() === "" || Number(text) > 0;
}

function limit(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

/** What keeps the chosen engine from being asked of the chosen graph. `null`: nothing. */
export function engineComplaint(draft: Draft, graphs: readonly Graph[]): string | null {
  if (!draft.engine.trim()) return null;
  const graph = graphs.find(({ name }) => name === draft.graph);
  if (!graph) return `This installation does not offer the graph ${draft.graph}. Choose another one.`;
  if (graph.roles.length > 0) return null;
  return `The graph ${graph.title || graph.name} has no roles, so its engine cannot be chosen. Clear “Answered by”.`;
}

/** `graphs` is read only where an engine is chosen: it answers every role of the graph. */
export function runRequest(draft: Draft, graphs: readonly Graph[]): RunRequest {
  const roles = graphs.find((graph) => graph.name === draft.graph)?.roles ?? [];
  const minutes = limit(draft.minutes);
  return {
    question: draft.question.trim(),
    graph: draft.graph,
    budget: { turns: draft.turns, usd: limit(draft.usd), seconds: minutes === null ? null : minutes * 60 },
    engines: draft.engine.trim() ? Object.fromEntries(roles.map((role) => [role, engineChoice(draft.engine)])) : {},
    scope: { ...documentsOf(draft), web: draft.web, mcp: [...draft.mcp], code: draft.code },
    seed: 0,
  };
}

/** Attached documents first; more than a scope may name are named by their collections. */
function documentsOf(draft: Draft): { collections: string[]; sources: string[] } {
  if (draft.sources.length > MAX_SOURCES) return { collections: [...draft.attachedTo], sources: [] };
  if (draft.sources.length > 0) return { collections: [], sources: [...draft.sources] };
  return { collections: [...draft.collections], sources: [] };
}

/** Engines and models to choose from, as they are written: `extractive`, `litellm:provider/model`. */
export function engineOptions(engines: readonly Engine[]): string[] {
  return engines
    .filter((engine) => engine.available)
    .flatMap(({ name, models }) => {
      const [engine = name] = name.split(":");
      return models.length === 0 ? [name] : models.map((model) => `${engine}:${model}`);
    });
}
