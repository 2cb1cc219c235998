/** Metrics by training step, and the bars of their groups. Pure. */

import type { Metric } from "@/shared/api/training";
import { MARGIN_PX, type Point, type Scale, stepX } from "@/shared/chart/line-geometry";

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
