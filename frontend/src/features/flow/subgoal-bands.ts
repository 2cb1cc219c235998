/** Turns of a run by the subgoal that was in force. Pure. */

import type { WholeStep } from "@/shared/api/flow";

export interface BandTurn {
  turn: number;
  seq: number;
  tool: string;
  finding: string;
  /** It kept its subgoal, and wrote another one. */
  drifted: boolean;
  ok: boolean;
}

export interface Band {
  number: number;
  subgoal: string;
  turns: BandTurn[];
}

/** One band for each subgoal, in order. Steps without one are left out. */
export function bandsOf(steps: readonly WholeStep[]): Band[] {
  const bands: Band[] = [];
  for (const step of steps) {
    const { subgoal_nr: number, subgoal, tool, finding, drifted } = step.payload;
    if (typeof number !== "number") continue;
    let band = bands.at(-1);
    if (band?.number !== number) {
      band = { number, subgoal: String(subgoal ?? ""), turns: [] };
      bands.push(band);
    }
    band.turns.push({
      turn: step.turn,
      seq: step.seq,
      tool: String(tool ?? ""),
      finding: String(finding ?? ""),
      drifted: drifted === true,
      ok: step.ok,
    });
  }
  return bands;
}
