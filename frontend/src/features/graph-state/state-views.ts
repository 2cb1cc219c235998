/** What the tab State shows of a run, as its graph declares it. Pure. */

import type { Graph } from "@/shared/api/installation";

export type StateView = NonNullable<Graph["state_view"]>;

/** Return the state view of a graph. `null` means that the graph has none, is not available, or that no graphs are loaded. */
export function findStateView(graphs: readonly Graph[] | undefined, name: string): StateView | null {
  return graphs?.find((graph) => graph.name === name)?.state_view ?? null;
}
