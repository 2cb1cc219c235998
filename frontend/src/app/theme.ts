import { useState } from "react";

const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const STORAGE_KEY = "offing.theme";

function readTheme(): Theme {
  const set = document.documentElement.dataset.theme;
  return set === "light" || set === "dark" ? set : "system";
}

/**
 * Return the theme and a function that selects the next one. `public/theme.js` applies the stored theme before the
 * first paint.
 */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(readTheme);
  const nextTheme = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      if (next === "system") localStorage.removeItem(STORAGE_KEY);
      else localStorage.setItem(STORAGE_KEY, next);
    } catch {
      // Without storage, the theme lasts until the page is closed.
    }
    setTheme(next);
  };
  return [theme, nextTheme];
}
