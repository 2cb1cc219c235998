/** Requests that follow an ended run. Pure. */

import type { MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { type Depth, depthOfTurns, TURNS_BY_DEPTH } from "@/shared/api/depth";
import { collectionLabel } from "@/shared/api/library";
import type { FollowUpKind, Run, RunRequest } from "@/shared/api/runs";
import { joinList } from "@/shared/format/lists";

type PreviousRun = Pick<Run, "id" | "question" | "graph" | "thread_id" | "engines" | "budget" | "scope" | "title">;

/** What a follow-up does with the report of the run before it, with words for a person to choose from. */
export const FOLLOW_UP_KINDS: ReadonlyArray<{ kind: FollowUpKind; label: MessageDescriptor }> = [
  { kind: "auto", label: msg`Decide for me` },
  { kind: "question", label: msg`Ask about the report` },
  { kind: "edit", label: msg`Edit the report` },
  { kind: "research", label: msg`Research more` },
];

/**
 * Build a new question in the thread of the run, with the same graph, engines, budget and scope. If the run has a
 * report, it is a follow-up of this kind on that report.
 */
export function buildFollowUp(
  run: PreviousRun,
  question: string,
  turns: number,
  kind: FollowUpKind = "auto",
): RunRequest {
  return {
    question,
    graph: run.graph,
    thread_id: run.thread_id,
    engines: run.engines,
    budget: { ...run.budget, max_turns: turns, depth: chooseDepth(run, turns) },
    scope: run.scope,
    interactions: [],
    seed: 0,
    follow_up: run.title === null ? null : { kind, run_id: run.id },
  };
}

/** A follow-up with as many turns as its run has the depth of the run. */
function chooseDepth(run: PreviousRun, turns: number): Depth {
  return turns === run.budget.max_turns ? run.budget.depth : depthOfTurns(turns);
}

const MAX_TURNS = 2048;

/** Build a request for the same question with the next larger turn limit and twice the other limits that are set. */
export function buildDeeperRequest(run: PreviousRun): RunRequest {
  const { max_turns: turns, max_tokens: tokens, max_cost_usd: usd, max_seconds: seconds } = run.budget;
  const next = Object.values(TURNS_BY_DEPTH).find((preset) => preset > turns) ?? Math.min(MAX_TURNS, turns * 2);
  const double = (limit: number | null | undefined) => (limit == null ? null : limit * 2);
  return {
    ...buildFollowUp(run, run.question, next, "research"),
    budget: {
      depth: run.budget.depth === "deep" || next >= TURNS_BY_DEPTH.deep ? "deep" : depthOfTurns(next),
      max_turns: next,
      max_tokens: double(tokens),
      max_cost_usd: double(usd),
      max_seconds: double(seconds),
    },
  };
}

/** Describe the scope of a run, as in "papers, the web and code". */
export function describeScope(scope: PreviousRun["scope"]): string {
  const { collections, sources, web, code, mcp, only_domains: only, offline } = scope;
  const documents =
    sources.length > 0
      ? [plural(sources.length, { one: "# document", other: "# documents" })]
      : collections.length > 0
        ? collections.map(collectionLabel)
        : [t`all documents`];
  return joinList([
    ...documents,
    ...(web ? [only.length > 0 ? t`${joinList(only)} on the web` : t`the web`] : []),
    ...(code ? [t`code`] : []),
    ...mcp,
    ...(offline ? [t`nothing outside this machine`] : []),
  ]);
}
