/** Which node of a graph a run is in. Pure. */

import type { NodeUsage } from "@/shared/api/run-views";

/**
 * Return the node that works now, by the current action and what the nodes have recorded. The action names a role or a
 * tool: a role belongs to the node that called it before, a tool to the node that recorded the last step. `null` means
 * that it is unknown.
 */
export function findCurrentNode(action: string | null, nodes: readonly NodeUsage[]): string | null {
  if (action === null) return null;
  const name = action.split(":")[0]?.trim() ?? "";
  const callers = nodes.filter((node) => node.node !== "" && (node.roles.includes(name) || node.node === name));
  const candidates = callers.length > 0 ? callers : nodes.filter((node) => node.node !== "");
  return (
    candidates.reduce<NodeUsage | null>(
      (latest, node) => (latest === null || node.last_seq > latest.last_seq ? node : latest),
      null,
    )?.node ?? null
  );
}
