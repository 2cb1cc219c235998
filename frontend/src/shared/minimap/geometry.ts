/** Positions of the step marks, as one path per color, so that ten thousand marks need only a few elements. Pure. */

import { MARK_STYLES, parseMark, type StepMark } from "./marks";

export interface Frame {
  /** In pixels. */
  width: number;
  height: number;
  /** Number of steps in the full width, at least the number of marks. */
  steps: number;
}

/** Return the height of the baseline. It lies slightly below the middle, because more marks are drawn above it. */
export function baselineY(height: number): number {
  return Math.round(height * 0.6);
}

/** Return the left edge of a step's slot, in pixels. `seq` starts at 1. */
export function stepX(seq: number, frame: Frame): number {
  return ((seq - 1) / Math.max(1, frame.steps)) * frame.width;
}

/** Return the step at this pixel, from 1 to `count`. */
export function seqAt(x: number, frame: Frame, count: number): number {
  const seq = Math.floor((x / Math.max(1, frame.width)) * frame.steps) + 1;
  return Math.min(Math.max(1, seq), Math.max(1, count));
}

/** Maximum and minimum width of a mark, in pixels. */
const MAX_BAR_PX = 3;
const MIN_BAR_PX = 0.8;

/** Minimum width of a column, in pixels. A narrower slot is merged with its neighbors. */
const MIN_COLUMN_PX = 2.5;

interface Column {
  x: number;
  marks: StepMark[];
}

function groupColumns(marks: string, frame: Frame): Column[] {
  const slot = frame.width / Math.max(1, frame.steps);
  const stride = slot >= 1.4 ? 1 : Math.ceil(MIN_COLUMN_PX / slot);
  const grouped: Column[] = [];
  for (let at = 0; at < marks.length; at += stride) {
    const columnMarks = [...marks.slice(at, at + stride)].map(parseMark);
    grouped.push({ x: stepX(at + 1, frame), marks: columnMarks });
  }
  return grouped;
}

interface Bar {
  mark: StepMark;
  up: number;
  down: number;
}

function prevailingMark(marks: readonly StepMark[]): StepMark | undefined {
  const counts = new Map<StepMark, number>();
  for (const mark of marks) counts.set(mark, (counts.get(mark) ?? 0) + MARK_STYLES[mark].weight);
  return [...counts].sort((left, right) => right[1] - left[1])[0]?.[0];
}

/**
 * Return the bars of a column. One step has its own mark. For several steps, each side shows its prevailing kind, with
 * a length proportional to the share of steps on that side.
 */
function columnBars(marks: readonly StepMark[]): Bar[] {
  const only = marks.length === 1 ? marks[0] : undefined;
  if (only) return [{ mark: only, up: MARK_STYLES[only].up, down: MARK_STYLES[only].down }];
  if (marks.includes("h")) return [{ mark: "h", up: 1, down: 1 }];
  const above = marks.filter((mark) => MARK_STYLES[mark].up > 0 && MARK_STYLES[mark].down === 0);
  const below = marks.filter((letter) => MARK_STYLES[letter].down > 0 && MARK_STYLES[letter].up === 0);
  const failed = marks.filter((letter) => letter === "f").length / marks.length;
  const top = prevailingMark(above);
  const bottom = prevailingMark(below);
  return [
    ...(top ? [{ mark: top, up: 0.15 + (0.85 * above.length) / marks.length, down: 0 }] : []),
    ...(bottom ? [{ mark: bottom, up: 0, down: 0.15 + (0.85 * below.length) / marks.length }] : []),
    ...(failed > 0 ? [{ mark: "f" as const, up: failed, down: failed }] : []),
  ];
}

/** Return path data by step mark. */
export function markPaths(marks: string, frame: Frame): Map<StepMark, string> {
  const slot = frame.width / Math.max(1, frame.steps);
  const barWidth = Math.min(MAX_BAR_PX, Math.max(MIN_BAR_PX, slot >= 1.4 ? slot * 0.62 : MIN_COLUMN_PX * 0.6));
  const line = baselineY(frame.height);
  const pathByMark = new Map<StepMark, string>();
  for (const { x, marks: columnMarks } of groupColumns(marks, frame)) {
    for (const { mark, up, down } of columnBars(columnMarks)) {
      const from = up > 0 ? line - 1 - up * (line - 4) : line + 1;
      const to = down > 0 ? line + 1 + down * (frame.height - line - 4) : line - 1;
      const barPath = `M${x.toFixed(1)} ${from.toFixed(1)}h${barWidth.toFixed(1)}V${to.toFixed(1)}h${(-barWidth).toFixed(1)}z`;
      pathByMark.set(mark, (pathByMark.get(mark) ?? "") + barPath);
    }
  }
  return pathByMark;
}

/** Typical number of steps per turn of the loop: plan, call, result, memory, verification and others. */
const STEPS_PER_TURN = 6;

/**
 * Return the number of steps in the full width. An active run leaves room up to its turn limit, so that marks do not
 * move as it grows. An ended run fills the width.
 */
export function expectedSteps(count: number, turnLimit: number, ended: boolean): number {
  if (ended) return count;
  const estimate = turnLimit * STEPS_PER_TURN + 6;
  return count <= estimate ? estimate : Math.ceil(count / estimate) * estimate;
}

/**
 * Return the frame for this number of steps, in which no step is wider than `maxStepPx`. A short run gets a short line.
 */
export function createFrame(width: number, height: number, steps: number, maxStepPx: number): Frame {
  return { width, height, steps: Math.max(steps, Math.ceil(width / maxStepPx)) };
}
