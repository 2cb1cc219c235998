/**
 * Drafts: input that was not sent yet. A draft survives a reload of the tab, belongs to the tenant of the session, and
 * is deleted when that user signs out.
 */

import { useState } from "react";
import { sessionTenant } from "../api/session";

const PREFIX = "offing.draft.";

/** The tenant's name is escaped, so that it cannot end within a key. */
function storageKey(key: string): string {
  return `${PREFIX}${encodeURIComponent(sessionTenant() ?? "")}:${key}`;
}

/** Return the stored draft, or `fallback` if there is none or it cannot be read. */
export function readDraft<T>(key: string, fallback: T): T {
  try {
    const stored = sessionStorage.getItem(storageKey(key));
    return stored === null ? fallback : (JSON.parse(stored) as T);
  } catch {
    // Without storage, or after a version of the web UI with another format, there is no draft.
    return fallback;
  }
}

export function storeDraft(key: string, value: unknown): void {
  try {
    sessionStorage.setItem(storageKey(key), JSON.stringify(value));
  } catch {
    // Without storage, the draft lasts until the page is closed.
  }
}

export function deleteDraft(key: string): void {
  try {
    sessionStorage.removeItem(storageKey(key));
  } catch {
    // Without storage, there is nothing to delete.
  }
}

/** Return the storage keys of the drafts of every user who was signed in in this tab. */
function listKeys(): string[] {
  return Object.keys(sessionStorage).filter((item) => item.startsWith(PREFIX));
}

/** Return the stored drafts of every user who was signed in in this tab, as JSON. */
export function listStoredDrafts(): string[] {
  try {
    return listKeys().map((key) => sessionStorage.getItem(key) ?? "");
  } catch {
    // Without storage, there are no drafts.
    return [];
  }
}

/** Delete the drafts of every user who was signed in in this tab. */
export function deleteAllDrafts(): void {
  try {
    for (const item of listKeys()) sessionStorage.removeItem(item);
  } catch {
    // Without storage, there is nothing to delete.
  }
}

/** State that survives a reload. Setting the initial value deletes the draft. */
export function useDraft<T>(key: string, initial: T): [T, (next: T) => void] {
  const [value, setValue] = useState(() => readDraft(key, initial));
  const change = (next: T) => {
    setValue(next);
    if (JSON.stringify(next) === JSON.stringify(initial)) deleteDraft(key);
    else storeDraft(key, next);
  };
  return [value, change];
}
