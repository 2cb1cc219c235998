/** A change of a run's plan that was not sent yet. Pure. */

import type { PlanItem, RunPlan } from "@/shared/api/run-views";

/** Limits of the server. */
export const MAX_ITEMS = 20;
export const MAX_ITEM_CHARS = 300;

export interface DraftItem extends PlanItem {
  /** Identifies the item while it is edited and moved. */
  id: number;
  must_answer: boolean;
}

export interface OutlineDraft {
  /** Version of the plan that the draft began with. */
  version: number;
  items: DraftItem[];
}

export function beginDraft(plan: RunPlan): OutlineDraft {
  const items = plan.items.map(({ text, must_answer: must }, id) => ({ id, text, must_answer: must }));
  return { version: plan.version, items: items.length > 0 ? items : [emptyItem(items)] };
}

function emptyItem(items: readonly DraftItem[]): DraftItem {
  return { id: Math.max(-1, ...items.map(({ id }) => id)) + 1, text: "", must_answer: false };
}

export function addItem(draft: OutlineDraft): OutlineDraft {
  return draft.items.length >= MAX_ITEMS ? draft : { ...draft, items: [...draft.items, emptyItem(draft.items)] };
}

export function changeItem(draft: OutlineDraft, id: number, part: Partial<PlanItem>): OutlineDraft {
  return { ...draft, items: draft.items.map((item) => (item.id === id ? { ...item, ...part } : item)) };
}

export function removeItem(draft: OutlineDraft, id: number): OutlineDraft {
  return { ...draft, items: draft.items.filter((item) => item.id !== id) };
}

/** Move an item up (-1) or down (1). At an end it stays. */
export function moveItem(draft: OutlineDraft, id: number, offset: number): OutlineDraft {
  const from = draft.items.findIndex((item) => item.id === id);
  const to = from + offset;
  const moved = draft.items[from];
  if (!moved || to < 0 || to >= draft.items.length) return draft;
  const items = draft.items.filter((item) => item.id !== id);
  items.splice(to, 0, moved);
  return { ...draft, items };
}

/** Return the items to send. Empty ones are left out. */
export function listSent(draft: OutlineDraft): PlanItem[] {
  return draft.items
    .map(({ text, must_answer: must }) => ({ text: text.trim().replace(/\s+/g, " "), must_answer: must }))
    .filter(({ text }) => text !== "");
}

export type DraftProblem = "empty" | "repeated" | "unchanged";

/** Return why the draft cannot be sent. `null` means that it can. */
export function findProblem(draft: OutlineDraft, plan: RunPlan): DraftProblem | null {
  const sent = listSent(draft);
  if (sent.length === 0) return "empty";
  if (new Set(sent.map(({ text }) => text)).size < sent.length) return "repeated";
  const before = plan.items.map(({ text, must_answer: must }) => ({ text, must_answer: must }));
  return JSON.stringify(before) === JSON.stringify(sent) ? "unchanged" : null;
}
