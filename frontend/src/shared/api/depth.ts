/** The depth of runs: how they use their turns. Pure. */

import type { RunRequest } from "./runs";

export type Depth = NonNullable<NonNullable<RunRequest["budget"]>["depth"]>;

export const TURNS_BY_DEPTH: Record<Depth, number> = { quick: 4, standard: 12, deep: 40 };

/** Return the depth whose number of turns this is. Any other number is a standard run. */
export function depthOfTurns(turns: number): Depth {
  const depths = Object.keys(TURNS_BY_DEPTH) as Depth[];
  return depths.find((depth) => TURNS_BY_DEPTH[depth] === turns) ?? "standard";
}
