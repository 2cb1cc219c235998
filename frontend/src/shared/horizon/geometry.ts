/** Where each mark stands, as one path a colour, so that ten thousand marks are a handful of elements. Pure. */

import { type Letter, letterOf, MARKS } from "./marks";

export interface Frame {
  /** Pixels. */
  width: number;
  height: number;
  /** Steps that the whole width stands for; at least the number of marks. */
  steps: number;
}

/** The line lies a little below the middle: more reaching out than taking in. */
export function waterline(height: number): number {
  return Math.round(height * 0.6);
}

/** Left edge of a step's slot, in pixels. `seq` from 1. */
export function xOf(seq: number, frame: Frame): number {
  return ((seq - 1) / Math.max(1, frame.steps)) * frame.width;
}

/** The step whose slot holds this pixel, within 1..count. */
export function seqAt(x: number, frame: Frame, count: number): number {
  const seq = Math.floor((x / Math.max(1, frame.width)) * frame.steps) + 1;
  return Math.min(Math.max(1, seq), Math.max(1, count));
}

/** Widest mark and narrowest mark, in pixels. */
const WIDE = 3;
const NARROW = 0.8;

/** The heaviest letter of each column of about one pixel; where a step has a column of its own, just its letter. */
function columns(marks: string, frame: Frame): { x: number; letter: Letter }[] {
  const slot = frame.width / Math.max(1, frame.steps);
  const stride = Math.max(1, Math.ceil(1 / slot));
  const found: { x: number; letter: Letter }[] = [];
  for (let at = 0; at < marks.length; at += stride) {
    let letter = letterOf(marks[at]);
    for (let next = at + 1; next < Math.min(at + stride, marks.length); next += 1) {
      const other = letterOf(marks[next]);
      if (MARKS[other].weight > MARKS[letter].weight) letter = other;
    }
    found.push({ x: xOf(at + 1, frame), letter });
  }
  return found;
}

/** Path data by letter. */
export function paths(marks: string, frame: Frame): Map<Letter, string> {
  const slot = frame.width / Math.max(1, frame.steps);
  const wide = Math.min(WIDE, Math.max(NARROW, slot * 0.62));
  const line = waterline(frame.height);
  const drawn = new Map<Letter, string>();
  for (const { x, letter } of columns(marks, frame)) {
    const { up, down } = MARKS[letter];
    const top = line - 1 - up * (line - 4);
    const bottom = line + 1 + down * (frame.height - line - 4);
    const from = up > 0 ? top : line + 1;
    const to = down > 0 ? bottom : line - 1;
    const piece = `M${x.toFixed(1)} ${from.toFixed(1)}h${wide.toFixed(1)}V${to.toFixed(1)}h${(-wide).toFixed(1)}z`;
    drawn.set(letter, (drawn.get(letter) ?? "") + piece);
  }
  return drawn;
}

/** Steps of one turn of the loop, by experience: plan, call, result, memory, verdict, and some. */
const STEPS_A_TURN = 6;

/**
 * How many steps the width stands for: an active run leaves room up to its turn limit, so that marks do not move as
 * it grows; an ended run fills its line.
 */
export function expectedSteps(count: number, turnLimit: number, ended: boolean): number {
  if (ended) return Math.max(count, 12);
  const guess = turnLimit * STEPS_A_TURN + 6;
  return count <= guess ? guess : Math.ceil(count / guess) * guess;
}
