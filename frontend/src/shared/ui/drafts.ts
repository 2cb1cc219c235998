/** What a person has typed or chosen and not sent yet. It survives a reload of this tab's page. */

import { useState } from "react";

const PREFIX = "offing.draft.";

/** Return the stored draft, or `otherwise` where there is none or it cannot be read. */
export function readDraft<T>(key: string, otherwise: T): T {
  try {
    const stored = sessionStorage.getItem(PREFIX + key);
    return stored === null ? otherwise : (JSON.parse(stored) as T);
  } catch {
    // Without storage, or after a version of the page that wrote something else, nothing was kept.
    return otherwise;
  }
}

export function storeDraft(key: string, value: unknown): void {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Without storage the draft lives as long as the page.
  }
}

export function forgetDraft(key: string): void {
  try {
    sessionStorage.removeItem(PREFIX + key);
  } catch {
    // Without storage there is nothing to forget.
  }
}

/** State that survives a reload. Setting the value it began with forgets it. */
export function useDraft<T>(key: string, start: T): [T, (next: T) => void] {
  const [value, setValue] = useState(() => readDraft(key, start));
  const change = (next: T) => {
    setValue(next);
    if (JSON.stringify(next) === JSON.stringify(start)) forgetDraft(key);
    else storeDraft(key, next);
  };
  return [value, change];
}
