/** Geometry of small line charts over numbered steps, such as training steps or turns. Pure. */

export interface Point {
  step: number;
  /** `null` means that it was not a finite number. */
  value: number | null;
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
export const MARGIN_PX = 3;

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
