import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import { useSyncExternalStore } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
export const THEME_NAMES: Record<Theme, MessageDescriptor> = {
  system: msg`system`,
  light: msg`light`,
  dark: msg`dark`,
};
const STORAGE_KEY = "offing.theme";

const listeners = new Set<() => void>();

function readTheme(): Theme {
  const set = document.documentElement.dataset.theme;
  return set === "light" || set === "dark" ? set : "system";
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Return the theme that follows the given one when a person changes it. */
export function followingTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
}

export function setTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // Without storage, the theme lasts until the page is closed.
  }
  for (const listener of listeners) listener();
}

/** Return the theme. `public/start.js` applies the stored theme before the first paint. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, readTheme);
}
