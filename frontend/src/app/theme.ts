import { useState } from "react";

const ORDER = ["system", "light", "dark"] as const;
export type Theme = (typeof ORDER)[number];
const KEY = "offing.theme";

function current(): Theme {
  const set = document.documentElement.dataset.theme;
  return set === "light" || set === "dark" ? set : "system";
}

/** The theme and a step to the next one. public/theme.js puts the stored one in place before the first paint. */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(current);
  const step = () => {
    const next = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system";
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      if (next === "system") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, next);
    } catch {
      // Without storage the choice lives as long as the page.
    }
    setTheme(next);
  };
  return [theme, step];
}
