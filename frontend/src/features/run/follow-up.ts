/** What is asked after a run has ended. Pure. */

import { collectionName } from "@/shared/api/library";
import type { Run, RunRequest } from "@/shared/api/runs";
import { counted } from "@/shared/format/numbers";
import { listed } from "@/shared/format/words";

type Parent = Pick<Run, "question" | "graph" | "thread_id" | "engines" | "budget" | "scope">;

/** A new question in the run's thread, with its graph, engines, limits, and what it may see and use. */
export function followUpRequest(run: Parent, question: string, turns: number): RunRequest {
  return {
    question,
    graph: run.graph,
    thread_id: run.thread_id,
    engines: run.engines,
    budget: { ...run.budget, turns },
    scope: run.scope,
    seed: 0,
  };
}

const LONGEST = 2048;

/** The same question with the next preset's turns, and twice the money, tokens and time where they were limited. */
export function deeperRequest(run: Parent): RunRequest {
  const { turns, tokens, usd, seconds } = run.budget;
  const next = [4, 12, 40].find((preset) => preset > turns) ?? Math.min(LONGEST, turns * 2);
  const twice = (limit: number | null | undefined) => (limit == null ? null : limit * 2);
  return {
    ...followUpRequest(run, run.question, next),
    budget: { turns: next, tokens: twice(tokens), usd: twice(usd), seconds: twice(seconds) },
  };
}

/** What a run may see and use, as in "papers, the web and code". */
export function scopeWords({ collections, sources, web, code, mcp }: Parent["scope"]): string {
  const documents =
    sources.length > 0
      ? [counted(sources.length, "document")]
      : collections.length > 0
        ? collections.map(collectionName)
        : ["all documents"];
  return listed([...documents, ...(web ? ["the web"] : []), ...(code ? ["code"] : []), ...mcp]);
}
