/** The language of the page: the choice of this browser. */

import { useLingui } from "@lingui/react";
import { useState } from "react";
import { chooseLanguage, isLanguage, type Language } from "./languages";
import { showLanguage } from "./view-texts";

const STORAGE_KEY = "offing.language";

/** `browser` follows the languages of the browser. */
export type LanguageChoice = Language | "browser";

export function readLanguageChoice(): LanguageChoice {
  try {
    const stored = localStorage.getItem(STORAGE_KEY);
    return isLanguage(stored) ? stored : "browser";
  } catch {
    // Some private windows block storage.
    return "browser";
  }
}

function storeLanguageChoice(choice: LanguageChoice): void {
  try {
    if (choice === "browser") localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, choice);
  } catch {
    // Without storage, the language lasts until the page is closed.
  }
}

/** Load the texts of a choice and show the page in its language. Rejects if they cannot be loaded. */
export async function applyLanguage(choice: LanguageChoice): Promise<void> {
  const language = choice === "browser" ? chooseLanguage(navigator.languages) : choice;
  await showLanguage(language);
}

/** Return the choice of this browser, and a function that changes it without a reload. It rejects if it cannot. */
export function useLanguageChoice(): [LanguageChoice, (choice: LanguageChoice) => Promise<void>] {
  const [choice, setChoice] = useState(readLanguageChoice);
  const change = async (next: LanguageChoice) => {
    await applyLanguage(next);
    storeLanguageChoice(next);
    setChoice(next);
  };
  return [choice, change];
}

/**
 * Render the calling component again when the language changes, and with it all that it renders. The functions `t` and
 * `plural` read the language when they are called, so every component that the router keeps needs this call.
 */
export function useLanguage(): string {
  return useLingui().i18n.locale;
}
