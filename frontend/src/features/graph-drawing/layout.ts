/**
 * A layered layout of a graph: nodes in rows from the start to the end, with the crossings of edges reduced. An edge that
 * leads back is turned around for the layout. An edge over several rows passes between the nodes of each. Pure.
 */

export interface GraphEdge {
  source: string;
  target: string;
  is_conditional: boolean;
}

export interface Point {
  x: number;
  y: number;
}

export interface PlacedEdge extends GraphEdge {
  /** From the source to the target, through the gaps of the rows between. One point: a loop at a node. */
  points: Point[];
  /** Whether the edge leads to an earlier row. */
  isBack: boolean;
}

export interface GraphLayout {
  width: number;
  height: number;
  /** Center of each node. */
  nodes: ReadonlyMap<string, Point>;
  edges: PlacedEdge[];
}

export const NODE_WIDTH = 176;
export const NODE_HEIGHT = 54;
const LANE_WIDTH = 26;
const GAP_X = 22;
const GAP_Y = 40;
const MARGIN = 26;
const SWEEPS = 6;

/** Height of the start and the end, which are smaller than nodes. */
const END_HEIGHT = 26;

export const START = "__start__";
export const END = "__end__";

export function heightOf(node: string): number {
  return node === START || node === END ? END_HEIGHT : NODE_HEIGHT;
}

export function layOutGraph(nodes: readonly string[], given: readonly GraphEdge[]): GraphLayout {
  const edges = given.filter(
    ({ source, target }, nth) =>
      nodes.includes(source) &&
      nodes.includes(target) &&
      // Two conditions that lead to the same node are one line.
      given.findIndex((other) => other.source === source && other.target === target) === nth,
  );
  const back = findBackEdges(nodes, edges);
  const ranks = rankNodes(nodes, edges, back);
  const { rows, chains } = addLanes(nodes, edges, back, ranks);
  const neighbors = listNeighbors(chains);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) sortRows(rows, neighbors, sweep % 2 === 0);
  const xs = placeRows(rows, neighbors);
  const left = Math.min(...[...xs].map(([id, x]) => x - widthOf(id) / 2));
  const at = (id: string): Point => ({
    x: (xs.get(id) ?? 0) - left + MARGIN,
    y: MARGIN + NODE_HEIGHT / 2 + (rows.findIndex((row) => row.includes(id)) || 0) * (NODE_HEIGHT + GAP_Y),
  });
  const right = Math.max(...[...xs].map(([id, x]) => x + widthOf(id) / 2));
  return {
    width: right - left + 2 * MARGIN,
    height: rows.length * (NODE_HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN,
    nodes: new Map(nodes.map((node) => [node, at(node)])),
    edges: edges.map((edge, nth) => {
      const points = (chains[nth] ?? []).map(at);
      const isBack = back.has(edge);
      return { ...edge, isBack, points: isBack ? points.toReversed() : points };
    }),
  };
}

/** Return the edges that close a cycle, in a depth-first walk in the order of the nodes. */
function findBackEdges(nodes: readonly string[], edges: readonly GraphEdge[]): Set<GraphEdge> {
  const back = new Set<GraphEdge>();
  const state = new Map<string, "open" | "done">();
  const visit = (node: string) => {
    state.set(node, "open");
    for (const edge of edges) {
      if (edge.source !== node || edge.target === node) continue;
      if (state.get(edge.target) === "open") back.add(edge);
      else if (!state.has(edge.target)) visit(edge.target);
    }
    state.set(node, "done");
  };
  for (const node of nodes) if (!state.has(node)) visit(node);
  return back;
}

/** Return the row of each node: the length of the longest way to it. */
function rankNodes(nodes: readonly string[], edges: readonly GraphEdge[], back: ReadonlySet<GraphEdge>) {
  const ranks = new Map(nodes.map((node) => [node, 0]));
  const forward = edges.filter((edge) => !back.has(edge) && edge.source !== edge.target);
  for (let round = 0; round < nodes.length; round += 1) {
    for (const { source, target } of forward) {
      ranks.set(target, Math.max(ranks.get(target) ?? 0, (ranks.get(source) ?? 0) + 1));
    }
  }
  return ranks;
}

const LANE = "\u0000";

function widthOf(id: string): number {
  return id.startsWith(LANE) ? LANE_WIDTH : NODE_WIDTH;
}

/** Return the rows with a lane for each edge that passes them, and each edge as the nodes and lanes that it passes. */
function addLanes(
  nodes: readonly string[],
  edges: readonly GraphEdge[],
  back: ReadonlySet<GraphEdge>,
  ranks: ReadonlyMap<string, number>,
) {
  const rows: string[][] = Array.from({ length: Math.max(0, ...ranks.values()) + 1 }, () => []);
  for (const node of nodes) rows[ranks.get(node) ?? 0]?.push(node);
  const chains = edges.map((edge, nth) => {
    if (edge.source === edge.target) return [edge.source];
    const [from, to] = back.has(edge) ? [edge.target, edge.source] : [edge.source, edge.target];
    const chain = [from];
    for (let rank = (ranks.get(from) ?? 0) + 1; rank < (ranks.get(to) ?? 0); rank += 1) {
      const lane = `${LANE}${nth} ${rank}`;
      rows[rank]?.push(lane);
      chain.push(lane);
    }
    return [...chain, to];
  });
  return { rows, chains };
}

interface Neighbors {
  above: Map<string, string[]>;
  below: Map<string, string[]>;
}

function listNeighbors(chains: readonly (readonly string[])[]): Neighbors {
  const neighbors: Neighbors = { above: new Map(), below: new Map() };
  const add = (map: Map<string, string[]>, id: string, other: string) => map.set(id, [...(map.get(id) ?? []), other]);
  for (const chain of chains) {
    for (let at = 1; at < chain.length; at += 1) {
      const [upper, lower] = [chain[at - 1] ?? "", chain[at] ?? ""];
      add(neighbors.below, upper, lower);
      add(neighbors.above, lower, upper);
    }
  }
  return neighbors;
}

function average(values: readonly number[], fallback: number): number {
  return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : fallback;
}

/** Sort each row by the mean position of its neighbors in the row before, downwards or upwards. */
function sortRows(rows: string[][], { above, below }: Neighbors, isDownwards: boolean): void {
  const order = isDownwards ? rows.keys() : [...rows.keys()].reverse();
  const positions = new Map(
    rows.flatMap((row) => row.map((id, at) => [id, at / Math.max(1, row.length - 1)] as const)),
  );
  for (const nth of order) {
    const row = rows[nth] ?? [];
    const means = new Map(
      row.map((id) => {
        const others = (isDownwards ? above : below).get(id) ?? [];
        return [
          id,
          average(
            others.map((other) => positions.get(other) ?? 0),
            positions.get(id) ?? 0,
          ),
        ] as const;
      }),
    );
    row.sort((first, second) => (means.get(first) ?? 0) - (means.get(second) ?? 0));
    row.forEach((id, at) => {
      positions.set(id, at / Math.max(1, row.length - 1));
    });
  }
}

/** Return the center of everything in the rows: near its neighbors, in order, without overlaps. */
function placeRows(rows: readonly (readonly string[])[], { above, below }: Neighbors): Map<string, number> {
  const xs = new Map<string, number>();
  for (const row of rows) placeRow(row, xs, () => 0);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const row of sweep % 2 === 0 ? rows : rows.toReversed()) {
      placeRow(row, xs, (id) => {
        const others = [...(above.get(id) ?? []), ...(below.get(id) ?? [])];
        return average(
          others.map((other) => xs.get(other) ?? 0),
          xs.get(id) ?? 0,
        );
      });
    }
  }
  return xs;
}

function placeRow(row: readonly string[], xs: Map<string, number>, wishOf: (id: string) => number): void {
  const wishes = row.map(wishOf);
  const placed: number[] = [];
  row.forEach((id, at) => {
    const before = row[at - 1];
    const least =
      before === undefined
        ? Number.NEGATIVE_INFINITY
        : (placed[at - 1] ?? 0) + (widthOf(before) + widthOf(id)) / 2 + GAP_X;
    placed.push(Math.max(wishes[at] ?? 0, least));
  });
  // The row keeps its mean, so that it does not drift to one side.
  const shift = average(wishes, 0) - average(placed, 0);
  row.forEach((id, at) => {
    xs.set(id, (placed[at] ?? 0) + shift);
  });
}

/** Return the path of an edge from the border of its source to the border of its target. */
export function edgePath({ source, target, points, isBack }: PlacedEdge): string {
  const [first] = points;
  const last = points.at(-1);
  if (!first || !last) return "";
  if (points.length === 1) {
    const right = first.x + NODE_WIDTH / 2;
    return `M${right} ${first.y - 9}C${right + 30} ${first.y - 14} ${right + 30} ${first.y + 14} ${right + 2} ${first.y + 9}`;
  }
  const sign = isBack ? -1 : 1;
  // An edge back leaves and enters beside the middle, so that it does not lie on the edge forward.
  const offset = isBack ? 18 : 0;
  const stops = points.map((point, at) => {
    if (at === 0) return { x: point.x + offset, y: point.y + (sign * heightOf(source)) / 2 };
    return at === points.length - 1 ? { x: point.x + offset, y: point.y - sign * (heightOf(target) / 2 + 3) } : point;
  });
  let path = `M${round(stops[0]?.x)} ${round(stops[0]?.y)}`;
  for (let at = 1; at < stops.length; at += 1) {
    const [from, to] = [stops[at - 1] ?? first, stops[at] ?? last];
    const middle = (from.y + to.y) / 2;
    path += `C${round(from.x)} ${round(middle)} ${round(to.x)} ${round(middle)} ${round(to.x)} ${round(to.y)}`;
  }
  return path;
}

function round(value = 0): number {
  return Math.round(value * 10) / 10;
}
