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

/** A column this narrow, in pixels, stands for several steps. */
const COLUMN = 2.5;

interface Column {
  x: number;
  letters: Letter[];
}

function columns(marks: string, frame: Frame): Column[] {
  const slot = frame.width / Math.max(1, frame.steps);
  const stride = slot >= 1.4 ? 1 : Math.ceil(COLUMN / slot);
  const found: Column[] = [];
  for (let at = 0; at < marks.length; at += stride) {
    const letters = [...marks.slice(at, at + stride)].map(letterOf);
    found.push({ x: xOf(at + 1, frame), letters });
  }
  return found;
}

interface Drawn {
  letter: Letter;
  up: number;
  down: number;
}

function most(letters: readonly Letter[]): Letter | undefined {
  const counts = new Map<Letter, number>();
  for (const letter of letters) counts.set(letter, (counts.get(letter) ?? 0) + MARKS[letter].weight);
  return [...counts].sort((left, right) => right[1] - left[1])[0]?.[0];
}

/** One step: its own mark. Several: on each side the prevailing kind, as long as its side's share of the steps. */
function drawnIn(letters: readonly Letter[]): Drawn[] {
  const only = letters.length === 1 ? letters[0] : undefined;
  if (only) return [{ letter: only, up: MARKS[only].up, down: MARKS[only].down }];
  if (letters.includes("h")) return [{ letter: "h", up: 1, down: 1 }];
  const above = letters.filter((letter) => MARKS[letter].up > 0 && MARKS[letter].down === 0);
  const below = letters.filter((letter) => MARKS[letter].down > 0 && MARKS[letter].up === 0);
  const failed = letters.filter((letter) => letter === "f").length / letters.length;
  const top = most(above);
  const bottom = most(below);
  return [
    ...(top ? [{ letter: top, up: 0.15 + (0.85 * above.length) / letters.length, down: 0 }] : []),
    ...(bottom ? [{ letter: bottom, up: 0, down: 0.15 + (0.85 * below.length) / letters.length }] : []),
    ...(failed > 0 ? [{ letter: "f" as const, up: failed, down: failed }] : []),
  ];
}

/** Path data by letter. */
export function paths(marks: string, frame: Frame): Map<Letter, string> {
  const slot = frame.width / Math.max(1, frame.steps);
  const wide = Math.min(WIDE, Math.max(NARROW, slot >= 1.4 ? slot * 0.62 : COLUMN * 0.6));
  const line = waterline(frame.height);
  const drawn = new Map<Letter, string>();
  for (const { x, letters } of columns(marks, frame)) {
    for (const { letter, up, down } of drawnIn(letters)) {
      const from = up > 0 ? line - 1 - up * (line - 4) : line + 1;
      const to = down > 0 ? line + 1 + down * (frame.height - line - 4) : line - 1;
      const piece = `M${x.toFixed(1)} ${from.toFixed(1)}h${wide.toFixed(1)}V${to.toFixed(1)}h${(-wide).toFixed(1)}z`;
      drawn.set(letter, (drawn.get(letter) ?? "") + piece);
    }
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
  if (ended) return count;
  const guess = turnLimit * STEPS_A_TURN + 6;
  return count <= guess ? guess : Math.ceil(count / guess) * guess;
}

/** The frame for so many steps, in which no step takes more than `widest` pixels: a short run is a short line. */
export function frameFor(width: number, height: number, steps: number, widest: number): Frame {
  return { width, height, steps: Math.max(steps, Math.ceil(width / widest)) };
}
