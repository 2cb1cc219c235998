/**
 * What a person has typed or chosen and not sent yet. It survives a reload of this tab's page, belongs to the tenant whose
 * session the page has, and goes when that person signs out.
 */

import { useState } from "react";
import { sessionTenant } from "../api/session";

const PREFIX = "offing.draft.";

/** A tenant's name is escaped, so that it cannot end within a key. */
function itemOf(key: string): string {
  return `${PREFIX}${encodeURIComponent(sessionTenant() ?? "")}:${key}`;
}

/** Return the stored draft, or `otherwise` where there is none or it cannot be read. */
export function readDraft<T>(key: string, otherwise: T): T {
  try {
    const stored = sessionStorage.getItem(itemOf(key));
    return stored === null ? otherwise : (JSON.parse(stored) as T);
  } catch {
    // Without storage, or after a version of the page that wrote something else, nothing was kept.
    return otherwise;
  }
}

export function storeDraft(key: string, value: unknown): void {
  try {
    sessionStorage.setItem(itemOf(key), JSON.stringify(value));
  } catch {
    // Without storage the draft lives as long as the page.
  }
}

export function forgetDraft(key: string): void {
  try {
    sessionStorage.removeItem(itemOf(key));
  } catch {
    // Without storage there is nothing to forget.
  }
}

/** Forget the drafts of everybody who was signed in in this tab. */
export function forgetAllDrafts(): void {
  try {
    const items = Object.keys(sessionStorage).filter((item) => item.startsWith(PREFIX));
    for (const item of items) sessionStorage.removeItem(item);
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
