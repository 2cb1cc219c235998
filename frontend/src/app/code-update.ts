/**
 * Recovery from an update of the web UI while it is open. An update removes the files of the earlier version, so code
 * that was not loaded yet cannot be loaded any more. The page is then reloaded once, unless that would lose input.
 */

import { hasUnsavedInput } from "@/shared/ui/unsaved-input";

/** Session storage key of the version that the page was last reloaded for. */
const RELOADED_KEY = "offing.reloaded-for";

const ENTRY_SCRIPT = /<script[^>]*type="module"[^>]*src="([^"]+)"/;

/** Effects that tests replace. */
export interface CodeUpdateEffects {
  /** Return the current `index.html` of the server. Rejects if the server cannot be reached. */
  fetchIndex(): Promise<string>;
  /** Return the address of the entry script of this page. Empty means that it is unknown. */
  loadedEntry(): string;
  reload(): void;
}

export const BROWSER_EFFECTS: CodeUpdateEffects = {
  fetchIndex: async () => {
    const response = await fetch("/", { cache: "no-store" });
    return response.ok ? response.text() : "";
  },
  loadedEntry: () => document.querySelector('script[type="module"][src]')?.getAttribute("src") ?? "",
  reload: () => location.reload(),
};

/** Return the entry script that an `index.html` names. `null` means that it names none. */
export function findEntryScript(html: string): string | null {
  return ENTRY_SCRIPT.exec(html)?.[1] ?? null;
}

/**
 * Reload the page if the server has another version, no input would be lost and the page was not reloaded for that
 * version before. Returns whether it was reloaded. Otherwise the view that needs the code shows the error.
 */
export async function recoverFromUpdate(effects: CodeUpdateEffects): Promise<boolean> {
  let entry: string | null;
  try {
    entry = findEntryScript(await effects.fetchIndex());
  } catch {
    entry = null; // the server is unavailable, and the banner says so
  }
  const loaded = effects.loadedEntry();
  if (entry === null || loaded === "" || entry === loaded) return false;
  if (hasUnsavedInput() || !noteReload(entry)) return false;
  effects.reload();
  return true;
}

/** Return whether this is the first reload for that version. Without storage nothing is reloaded, so that no loop can start. */
function noteReload(entry: string): boolean {
  try {
    if (sessionStorage.getItem(RELOADED_KEY) === entry) return false;
    sessionStorage.setItem(RELOADED_KEY, entry);
    return true;
  } catch {
    return false; // a reload that cannot be noted could repeat
  }
}

/** Recover whenever Vite reports that code could not be loaded. Returns a function that stops it. */
export function watchCodeUpdates(effects: CodeUpdateEffects): () => void {
  const handleError = () => recoverFromUpdate(effects);
  addEventListener("vite:preloadError", handleError);
  return () => removeEventListener("vite:preloadError", handleError);
}
