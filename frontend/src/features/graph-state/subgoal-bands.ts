/** Turns of a run grouped by their subgoal. Pure. */

import type { StepWithPayload } from "@/shared/api/step-payloads";

export interface BandTurn {
  turn: number;
  seq: number;
  tool: string;
  finding: string;
  /** The agent said that it kept its subgoal, but wrote a different one. */
  drifted: boolean;
  ok: boolean;
}

export interface SubgoalBand {
  number: number;
  subgoal: string;
  turns: BandTurn[];
}

/** Return one band for each subgoal, in order. Steps without a subgoal are skipped. */
export function buildBands(steps: readonly StepWithPayload[]): SubgoalBand[] {
  const bands: SubgoalBand[] = [];
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
