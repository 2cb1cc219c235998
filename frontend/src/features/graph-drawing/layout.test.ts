import { expect, test } from "vitest";
import type { NodeUsage } from "@/shared/api/run-views";
import { findCurrentNode } from "./current-node";
import { edgePath, type GraphEdge, layOutGraph, NODE_HEIGHT, NODE_WIDTH } from "./layout";

function edge(source: string, target: string): GraphEdge {
  return { source, target, is_conditional: false };
}

const AGENTFLOW = ["__start__", "analyze", "planner", "executor", "verifier", "generator", "__end__"];
const EDGES = [
  edge("__start__", "analyze"),
  edge("analyze", "planner"),
  edge("analyze", "generator"),
  edge("planner", "executor"),
  edge("planner", "generator"),
  edge("executor", "verifier"),
  edge("executor", "generator"),
  edge("verifier", "planner"),
  edge("verifier", "generator"),
  edge("generator", "__end__"),
];

test("nodes are in rows from the start to the end, and an edge back is marked", () => {
  const { nodes, edges } = layOutGraph(AGENTFLOW, EDGES);
  const ys = AGENTFLOW.map((name) => nodes.get(name)?.y ?? 0);
  expect(ys).toEqual([...ys].sort((first, second) => first - second));
  expect(edges.filter(({ isBack }) => isBack).map(({ source, target }) => [source, target])).toEqual([
    ["verifier", "planner"],
  ]);
});

test("nothing overlaps, and everything is inside the drawing", () => {
  const names = ["a", ...Array.from({ length: 6 }, (_, at) => `b${at}`), "c"];
  const many = names.slice(1, -1).flatMap((name) => [edge("a", name), edge(name, "c")]);
  const { nodes, width, height } = layOutGraph(names, [...many, edge("a", "c")]);
  const places = [...nodes.values()];
  for (const [nth, first] of places.entries()) {
    for (const second of places.slice(nth + 1)) {
      const apart = Math.abs(first.x - second.x) >= NODE_WIDTH || Math.abs(first.y - second.y) >= NODE_HEIGHT;
      expect(apart).toBe(true);
    }
    expect(first.x).toBeGreaterThan(NODE_WIDTH / 2);
    expect(first.x).toBeLessThan(width - NODE_WIDTH / 2);
    expect(first.y).toBeLessThan(height - NODE_HEIGHT / 2);
  }
});

test("an edge over several rows passes beside the nodes between", () => {
  const { nodes, edges } = layOutGraph(["a", "b", "c"], [edge("a", "b"), edge("b", "c"), edge("a", "c")]);
  const long = edges.find(({ source, target }) => source === "a" && target === "c");
  expect(long?.points).toHaveLength(3);
  const between = Math.abs((long?.points[1]?.x ?? 0) - (nodes.get("b")?.x ?? 0));
  expect(between).toBeGreaterThan(NODE_WIDTH / 2);
});

test("loops, cycles, single nodes and edges to unknown nodes are drawn or left out", () => {
  const { edges } = layOutGraph(["a", "b"], [edge("a", "a"), edge("a", "b"), edge("b", "a"), edge("b", "gone")]);
  expect(edges).toHaveLength(3);
  for (const one of edges) expect(edgePath(one)).toMatch(/^M[\d. -]+C/);
  expect(layOutGraph(["only"], []).nodes.size).toBe(1);
  expect(layOutGraph(["a", "b"], [edge("a", "b"), edge("a", "b")]).edges).toHaveLength(1);
});

function used(node: string, roles: string[], lastSeq: number): NodeUsage {
  return { node, roles, last_seq: lastSeq, visits: 1, steps: 1, ms: 0, tokens: 0, cost_usd: 0 };
}

test("the current node is the one that called the role before, or that recorded the last step", () => {
  const nodes = [used("plan", ["planner"], 4), used("act", ["executor"], 6), used("", [], 9)];
  expect(findCurrentNode("planner", nodes)).toBe("plan");
  expect(findCurrentNode("search_library: salt", nodes)).toBe("act");
  expect(findCurrentNode(null, nodes)).toBeNull();
  expect(findCurrentNode("planner", [])).toBeNull();
});
