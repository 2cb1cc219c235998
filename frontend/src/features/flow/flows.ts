/** Which graphs have something of their own to show, and under which word. Pure. */

export type Flow = "memory" | "versions" | "context" | "subgoals";

const FLOWS: Record<string, Flow> = {
  agentflow: "memory",
  iterresearch: "versions",
  memact: "context",
  supo: "context",
  hiper: "subgoals",
  research_team: "memory",
  research_team_reviewed: "memory",
  router: "memory",
};

export const FLOW_NAMES: Record<Flow, string> = {
  memory: "Memory",
  versions: "Report versions",
  context: "Context",
  subgoals: "Subgoals",
};

/** What a graph's runs show beside the timeline. null: nothing of its own. */
export function flowOf(graph: string): Flow | null {
  return FLOWS[graph] ?? null;
}
