/** From what the composer holds to what the server is asked. Pure. */

import { type Engine, engineChoice, type Graph } from "@/shared/api/catalog";
import type { RunRequest } from "@/shared/api/runs";

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
  sources: readonly string[];
  /** The run may search the web and read public pages. */
  web: boolean;
  /** MCP servers whose tools it may use. */
  mcp: readonly string[];
  code: boolean;
}

/** What must be changed before asking. null: nothing. */
export function complaint(draft: Draft): string | null {
  if (draft.question.trim().length < 3) return "Write a question of at least three characters.";
  if (draft.question.length > 8000) return "Shorten the question to 8,000 characters; put the rest in a document.";
  if (!isLimit(draft.usd)) return "Give the spending limit as a number of dollars, such as 2.50, or leave it empty.";
  if (!isLimit(draft.minutes)) return "Give the time limit as a number of minutes above zero, or leave it empty.";
  return null;
}

function isLimit(text: string): boolean {
  return text.trim() === "" || Number(text) > 0;
}

function limit(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

export function runRequest(draft: Draft, graphs: readonly Graph[]): RunRequest {
  const roles = graphs.find((graph) => graph.name === draft.graph)?.roles ?? [];
  const minutes = limit(draft.minutes);
  return {
    question: draft.question.trim(),
    graph: draft.graph,
    budget: { turns: draft.turns, usd: limit(draft.usd), seconds: minutes === null ? null : minutes * 60 },
    engines: draft.engine.trim() ? Object.fromEntries(roles.map((role) => [role, engineChoice(draft.engine)])) : {},
    scope: {
      collections: draft.sources.length > 0 ? [] : [...draft.collections],
      sources: [...draft.sources],
      web: draft.web,
      mcp: [...draft.mcp],
      code: draft.code,
    },
    seed: 0,
  };
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
