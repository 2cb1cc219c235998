/** Metrics by training step, and the geometry of their charts. Pure. */

import type { Metric } from "@/shared/api/training";

export interface Point {
  step: number;
  /** `null` means that it was not a finite number. */
  value: number | null;
}

export type Series = ReadonlyMap<string, readonly Point[]>;

/** Return metrics by name, in order of steps. */
export function buildSeries(metrics: readonly Metric[]): Series {
  const series = new Map<string, Point[]>();
  for (const { name, step, value } of metrics) {
    const points = series.get(name);
    if (points) points.push({ step, value });
    else series.set(name, [{ step, value }]);
  }
  return series;
}

export interface Scale {
  /** In pixels. */
  width: number;
  height: number;
  /** Number of steps in the full width. The first step is 1. */
  steps: number;
  low: number;
  high: number;
}

/** Space above and below, so that a stroke at either end is not cut off. */
const MARGIN_PX = 3;

/**
 * Return one scale for all lines. If all values are equal, `low` equals `high`. The scale includes 0 if 0 is closer
 * than twice the range of the values.
 */
export function fitScale(lines: readonly (readonly Point[])[], width: number, height: number, steps: number): Scale {
  let { low, high } = findRange(lines) ?? { low: 0, high: 0 };
  if (low > 0 && low < (high - low) * 2) low = 0;
  if (high < 0 && -high < (high - low) * 2) high = 0;
  return { width, height, steps, low, high };
}

/** Return the lowest and highest measured value. `null` means that no value was a finite number. */
export function findRange(lines: readonly (readonly Point[])[]): { low: number; high: number } | null {
  const values = lines.flatMap((points) => points.flatMap(({ value }) => (value === null ? [] : [value])));
  if (values.length === 0) return null;
  return {
    low: values.reduce((lowest, value) => Math.min(lowest, value)),
    high: values.reduce((highest, value) => Math.max(highest, value)),
  };
}

/** Return the middle of a step's slot. */
export function stepX(step: number, { width, steps }: Scale): number {
  return ((step - 0.5) / Math.max(1, steps)) * width;
}

/** Return the height of a value. Equal values are drawn in the middle, since there is no range. */
export function valueY(value: number, { height, low, high }: Scale): number {
  if (high === low) return height / 2;
  return MARGIN_PX + (1 - (value - low) / (high - low)) * (height - 2 * MARGIN_PX);
}

/** Return one path through the points. It is interrupted where a value is missing. */
export function linePath(points: readonly Point[], scale: Scale): string {
  let path = "";
  let open = false;
  for (const { step, value } of points) {
    if (value === null) {
      open = false;
      continue;
    }
    path += `${open ? "L" : "M"}${stepX(step, scale).toFixed(1)} ${valueY(value, scale).toFixed(1)}`;
    open = true;
  }
  return path;
}

/** Return the step at this pixel. */
export function stepAtX(x: number, width: number, steps: number): number {
  return Math.min(Math.max(1, Math.floor((x / Math.max(1, width)) * steps) + 1), Math.max(1, steps));
}

/** Return the point of a step, or the last point before it. `null` means that there is none. */
export function findPoint(points: readonly Point[], step: number | null): Point | null {
  if (step === null) return points.at(-1) ?? null;
  return points.findLast((point) => point.step <= step) ?? null;
}

export interface GroupBar {
  step: number;
  /** Groups that were trained on and whose rollouts had different rewards. */
  informative: number;
  /** Groups that were trained on although all their rollouts had the same reward. */
  uniform: number;
  stale: number;
  incomplete: number;
}

/** Return the groups of each step by outcome. */
export function buildGroupBars(series: Series): GroupBar[] {
  const at = (name: string) => new Map(series.get(name)?.map(({ step, value }) => [step, value ?? 0]));
  const [informative, stale, incomplete] = [at("groups_informative"), at("groups_stale"), at("groups_incomplete")];
  return (series.get("groups") ?? []).map(({ step, value }) => {
    const informativeCount = informative.get(step) ?? 0;
    return {
      step,
      informative: informativeCount,
      uniform: Math.max(0, (value ?? 0) - informativeCount),
      stale: stale.get(step) ?? 0,
      incomplete: incomplete.get(step) ?? 0,
    };
  });
}

/** Return the sums over all steps. */
export function sumGroupBars(bars: readonly GroupBar[]): Omit<GroupBar, "step"> {
  const total = { informative: 0, uniform: 0, stale: 0, incomplete: 0 };
  for (const bar of bars)
    for (const name of ["informative", "uniform", "stale", "incomplete"] as const) total[name] += bar[name];
  return total;
}

/** Return vertical bars: informative groups above the line, the others below it. */
export function groupBarPaths(bars: readonly GroupBar[], scale: Omit<Scale, "low" | "high">): Record<string, string> {
  const highest = Math.max(
    1,
    ...bars.map((bar) => bar.informative),
    ...bars.map((bar) => bar.uniform + bar.stale + bar.incomplete),
  );
  const line = scale.height / 2;
  const unit = (line - MARGIN_PX) / highest;
  const paths = { informative: "", uniform: "", unused: "" };
  for (const bar of bars) {
    const x = stepX(bar.step, { ...scale, low: 0, high: 1 }).toFixed(1);
    const foot = line + bar.uniform * unit;
    if (bar.informative) paths.informative += `M${x} ${line}V${(line - bar.informative * unit).toFixed(1)}`;
    if (bar.uniform) paths.uniform += `M${x} ${line}V${foot.toFixed(1)}`;
    if (bar.stale + bar.incomplete)
      paths.unused += `M${x} ${foot.toFixed(1)}V${(foot + (bar.stale + bar.incomplete) * unit).toFixed(1)}`;
  }
  return paths;
}
