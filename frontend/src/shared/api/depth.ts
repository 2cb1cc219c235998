/** The depth of runs: how they use their turns. Pure. */

import type { RunRequest } from "./runs";

export type Depth = NonNullable<NonNullable<RunRequest["budget"]>["depth"]>;

export const TURNS_BY_DEPTH: Record<Depth, number> = { quick: 4, standard: 12, deep: 40 };

/**
 * Return the depth of a run with this number of turns. A run with at least as many as a deep run is a deep run: it goes
 * on until it finds nothing new. Any other number is a standard run.
 */
export function depthOfTurns(turns: number): Depth {
  if (turns >= TURNS_BY_DEPTH.deep) return "deep";
  return turns === TURNS_BY_DEPTH.quick ? "quick" : "standard";
}
