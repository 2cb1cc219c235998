/** Whether a reload would lose input: typed text that no draft contains, or work such as an upload. */

import { listStoredDrafts } from "./drafts";

type TextField = HTMLInputElement | HTMLTextAreaElement;

const typedFields = new Set<TextField>();
/** Inputs whose value is not text that a person typed. */
const OTHER_TYPES = new Set(["checkbox", "radio", "file", "range", "button", "submit", "search"]);

function isTextField(target: EventTarget | null): target is TextField {
  if (target instanceof HTMLTextAreaElement) return true;
  return target instanceof HTMLInputElement && !OTHER_TYPES.has(target.type);
}

function handleInput(event: Event): void {
  if (isTextField(event.target)) typedFields.add(event.target);
}

/** Start to note which fields a person typed in. Returns a function that stops it. */
export function watchTypedFields(): () => void {
  document.addEventListener("input", handleInput, true);
  return () => {
    document.removeEventListener("input", handleInput, true);
    typedFields.clear();
  };
}

const checks = new Set<() => boolean>();

/** Add a check of whether a reload would lose something beside typed text. */
export function addUnsavedCheck(check: () => boolean): void {
  checks.add(check);
}

/** Return whether a field on the page contains typed text that no draft contains, or a check finds something else. */
export function hasUnsavedInput(): boolean {
  if ([...checks].some((check) => check())) return true;
  const drafts = listStoredDrafts();
  for (const field of typedFields) if (!field.isConnected) typedFields.delete(field);
  return [...typedFields].some(({ value }) => value.trim() !== "" && !drafts.some((text) => isIn(text, value)));
}

/** Drafts are JSON, in which text is escaped. */
function isIn(draft: string, value: string): boolean {
  return draft.includes(JSON.stringify(value).slice(1, -1));
}
