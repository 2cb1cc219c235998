/** What is asked after a run has ended. Pure. */

import type { Run, RunRequest } from "@/shared/api/runs";

type Parent = Pick<Run, "question" | "graph" | "thread_id" | "engines" | "budget">;

/** A new question in the run's thread, with its graph, engines and limits. */
export function followUpRequest(run: Parent, question: string, turns: number): RunRequest {
  return {
    question,
    graph: run.graph,
    thread_id: run.thread_id,
    engines: run.engines,
    budget: { ...run.budget, turns },
    scope: { collections: [], sources: [], web: false, mcp: [], code: false },
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
