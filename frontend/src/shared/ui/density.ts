import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import { rootChoice } from "./root-choice";

export const DENSITIES = ["comfortable", "compact"] as const;
/** How much space the rows of lists and tables have. Compact rows show more of them at once. */
export type Density = (typeof DENSITIES)[number];
export const DENSITY_NAMES: Record<Density, MessageDescriptor> = {
  comfortable: msg`comfortable`,
  compact: msg`compact`,
};

const choice = rootChoice<Density>("density", DENSITIES);
export const setDensity = choice.set;
export const useDensity = choice.use;
