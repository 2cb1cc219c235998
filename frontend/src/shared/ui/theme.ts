import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import { rootChoice } from "./root-choice";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
export const THEME_NAMES: Record<Theme, MessageDescriptor> = {
  system: msg`system`,
  light: msg`light`,
  dark: msg`dark`,
};

const choice = rootChoice<Theme>("theme", THEMES);
export const setTheme = choice.set;
export const useTheme = choice.use;

/** Return the theme that follows the given one when a person changes it. */
export function followingTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
}
