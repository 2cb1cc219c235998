/** Figures by step, and where a curve of them stands: on a line, as high as the figure is. Pure. */

import type { Metric } from "@/shared/api/training";

export interface Point {
  step: number;
  /** null: it was not a finite number. */
  value: number | null;
}

export type Series = ReadonlyMap<string, readonly Point[]>;

/** Figures by name, in order of steps. */
export function seriesOf(metrics: readonly Metric[]): Series {
  const found = new Map<string, Point[]>();
  for (const { name, step, value } of metrics) {
    const points = found.get(name);
    if (points) points.push({ step, value });
    else found.set(name, [{ step, value }]);
  }
  return found;
}

export interface Scale {
  /** Pixels. */
  width: number;
  height: number;
  /** Steps that the width stands for; the first is 1. */
  steps: number;
  low: number;
  high: number;
}

/** Room above and below, so that a stroke at either end is whole. */
const MARGIN = 3;

/** A scale for all of these at once; where all are equal, `low` and `high` are. It holds 0 where 0 is near: a share of the range that the figures take up. */
export function scaleOf(lines: readonly (readonly Point[])[], width: number, height: number, steps: number): Scale {
  let { low, high } = rangeOf(lines) ?? { low: 0, high: 0 };
  if (low > 0 && low < (high - low) * 2) low = 0;
  if (high < 0 && -high < (high - low) * 2) high = 0;
  return { width, height, steps, low, high };
}

/** The lowest and the highest value that was measured. `null`: none was a finite number. */
export function rangeOf(lines: readonly (readonly Point[])[]): { low: number; high: number } | null {
  const values = lines.flatMap((points) => points.flatMap(({ value }) => (value === null ? [] : [value])));
  if (values.length === 0) return null;
  return {
    low: values.reduce((least, value) => Math.min(least, value)),
    high: values.reduce((most, value) => Math.max(most, value)),
  };
}

/** Middle of a step's slot. */
export function xOf(step: number, { width, steps }: Scale): number {
  return ((step - 0.5) / Math.max(1, steps)) * width;
}

/** Equal values lie in the middle: there is no range that they could be high or low in. */
export function yOf(value: number, { height, low, high }: Scale): number {
  if (high === low) return height / 2;
  return MARGIN + (1 - (value - low) / (high - low)) * (height - 2 * MARGIN);
}

/** One path through the points; it breaks where a figure is missing. */
export function pathOf(points: readonly Point[], scale: Scale): string {
  let path = "";
  let open = false;
  for (const { step, value } of points) {
    if (value === null) {
      open = false;
      continue;
    }
    path += `${open ? "L" : "M"}${xOf(step, scale).toFixed(1)} ${yOf(value, scale).toFixed(1)}`;
    open = true;
  }
  return path;
}

/** The step whose slot holds this pixel. */
export function stepAt(x: number, width: number, steps: number): number {
  return Math.min(Math.max(1, Math.floor((x / Math.max(1, width)) * steps) + 1), Math.max(1, steps));
}

/** The point of a step, or the last one before it. null: there is none. */
export function pointAt(points: readonly Point[], step: number | null): Point | null {
  if (step === null) return points.at(-1) ?? null;
  return points.findLast((point) => point.step <= step) ?? null;
}

export interface GroupBar {
  step: number;
  /** Groups that were trained on and whose attempts differed. */
  differing: number;
  /** Trained on, all attempts of a group worth the same. */
  alike: number;
  stale: number;
  short: number;
}

/** The groups of each step by what became of them. */
export function groupBars(series: Series): GroupBar[] {
  const at = (name: string) => new Map(series.get(name)?.map(({ step, value }) => [step, value ?? 0]));
  const [differing, stale, short] = [at("groups_informative"), at("groups_stale"), at("groups_short")];
  return (series.get("groups") ?? []).map(({ step, value }) => {
    const teaching = differing.get(step) ?? 0;
    return {
      step,
      differing: teaching,
      alike: Math.max(0, (value ?? 0) - teaching),
      stale: stale.get(step) ?? 0,
      short: short.get(step) ?? 0,
    };
  });
}

/** Sums over the steps. */
export function groupTotals(bars: readonly GroupBar[]): Omit<GroupBar, "step"> {
  const total = { differing: 0, alike: 0, stale: 0, short: 0 };
  for (const bar of bars)
    for (const name of ["differing", "alike", "stale", "short"] as const) total[name] += bar[name];
  return total;
}

/** Uprights from the line: above it groups that teach, below it those that do not. */
export function barPaths(bars: readonly GroupBar[], scale: Omit<Scale, "low" | "high">): Record<string, string> {
  const most = Math.max(
    1,
    ...bars.map((bar) => bar.differing),
    ...bars.map((bar) => bar.alike + bar.stale + bar.short),
  );
  const line = scale.height / 2;
  const unit = (line - MARGIN) / most;
  const paths = { differing: "", alike: "", lost: "" };
  for (const bar of bars) {
    const x = xOf(bar.step, { ...scale, low: 0, high: 1 }).toFixed(1);
    const foot = line + bar.alike * unit;
    if (bar.differing) paths.differing += `M${x} ${line}V${(line - bar.differing * unit).toFixed(1)}`;
    if (bar.alike) paths.alike += `M${x} ${line}V${foot.toFixed(1)}`;
    if (bar.stale + bar.short)
      paths.lost += `M${x} ${foot.toFixed(1)}V${(foot + (bar.stale + bar.short) * unit).toFixed(1)}`;
  }
  return paths;
}
