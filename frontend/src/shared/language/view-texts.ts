/** The texts of the page. Each view loads its own beside its code, in the language of the page. */

import { fetchTexts } from "virtual:view-texts";
import { i18n } from "@lingui/core";
import type { Language } from "./languages";

/** The view with the texts that the page needs before it shows any other. The plugin of the build names it, too. */
const MAIN_VIEW = "main";

/** The views that were opened. The page needs their texts in every language that it changes to. */
const opened = new Set([MAIN_VIEW]);
/** The texts that are loaded or being loaded, by language and view. */
const loads = new Map<string, Promise<void>>();
/** The language of the page. `null` means that it shows nothing yet. */
let shown: Language | null = null;
/** The language that was asked for last. */
let wanted: Language | null = null;

/** Load the code of a view, and its texts in the language of the page. The build calls it for each lazy `import()`. */
export async function loadView<T>(view: string, load: () => Promise<T>): Promise<T> {
  opened.add(view);
  // A change of the language that is under way includes every opened view, so this view needs only its texts of now.
  const [code] = await Promise.all([load(), shown && loadTexts(shown, view)]);
  return code;
}

/**
 * Load the texts of all opened views in a language, then show the page in it. Rejects if they cannot be loaded. If
 * another language is asked for in the meantime, that one is shown.
 */
export async function showLanguage(language: Language): Promise<void> {
  wanted = language;
  // Views that are opened meanwhile are included, so no view is shown without its texts.
  for (let count = 0; count < opened.size; ) {
    count = opened.size;
    await Promise.all([...opened].map((view) => loadTexts(language, view)));
  }
  if (wanted !== language) return;
  shown = language;
  document.documentElement.lang = language;
  i18n.activate(language);
}

function loadTexts(language: Language, view: string): Promise<void> {
  const key = `${language} ${view}`;
  const known = loads.get(key);
  if (known) return known;
  const load = fetchIntoCatalog(language, view);
  loads.set(key, load);
  load.catch(() => {
    loads.delete(key);
    // An update removes the files of the earlier version, as it does with code. `app/code-update.ts` listens to this.
    dispatchEvent(new Event("vite:preloadError"));
  });
  return load;
}

async function fetchIntoCatalog(language: Language, view: string): Promise<void> {
  i18n.load(language, await fetchTexts(view, language));
}
