/**
 * The heights of closed rows. `timeline.css` gives rows at least these heights, so that a row has its final height before
 * it is measured: otherwise each new row would move those below it. Pure.
 */

import type { Step } from "@/shared/api/runs";
import type { Density } from "@/shared/ui/density";
import { rowTexts } from "./row-texts";

/** Height of the heading above the first step of a turn, in pixels. */
const TURN_HEIGHT = 35;
/** Heights of a step with one line and with two, in pixels. */
const WIDE = { one: 36, two: 54 };
/** On a phone, the title stands below the kind of the step. */
const NARROW = { one: 54, two: 73 };
/** How much lower each step is in compact rows, in pixels: `--row-trim` above and below. */
const COMPACT_TRIM = 8;

/** Return whether a step is the first of its turn. A `previousTurn` of `undefined` means that it is not known. */
export function startsTurn(step: Step, previousTurn: number | undefined): boolean {
  return step.turn > 0 && step.turn !== previousTurn;
}

/** Return whether the row of a step has two lines where there is room for its tokens. */
export function hasTwoLines(step: Step): boolean {
  return rowTexts(step).detail !== "" || (step.ms !== null && step.ms > 0 && step.tokens > 0);
}

/** Return the height of a closed row in pixels. A step that is not loaded has that of a step with two lines. */
export function rowHeight(
  step: Step | undefined,
  previousTurn: number | undefined,
  isNarrow: boolean,
  density: Density,
): number {
  const { one, two } = isNarrow ? NARROW : WIDE;
  const trim = density === "compact" ? COMPACT_TRIM : 0;
  if (!step) return two - trim;
  const isTall = isNarrow ? rowTexts(step).detail !== "" : hasTwoLines(step);
  return (isTall ? two : one) - trim + (startsTurn(step, previousTurn) ? TURN_HEIGHT : 0);
}
