import { expect, test } from "vitest";
import type { RunPlan } from "@/shared/api/run-views";
import {
  addItem,
  beginDraft,
  changeItem,
  findProblem,
  listSent,
  MAX_ITEMS,
  moveItem,
  removeItem,
} from "./outline-draft";

function aPlan(...texts: string[]): RunPlan {
  const items = texts.map((text) => ({ text, must_answer: false, state: "open" as const, missing: "" }));
  return { supports_changes: true, version: 3, items, change: null };
}

test("a draft begins with the parts of the plan, or with an empty one", () => {
  expect(beginDraft(aPlan("a", "b"))).toMatchObject({ version: 3, items: [{ text: "a" }, { text: "b" }] });
  expect(beginDraft(aPlan()).items).toEqual([{ id: 0, text: "", must_answer: false }]);
});

test("parts are added, changed, moved and removed, and keep their identity", () => {
  let draft = addItem(beginDraft(aPlan("a", "b")));
  draft = changeItem(draft, 2, { text: " c\n d ", must_answer: true });
  draft = moveItem(draft, 2, -1);
  draft = moveItem(draft, 0, -1);
  expect(draft.items.map(({ id }) => id)).toEqual([0, 2, 1]);
  draft = removeItem(draft, 0);
  expect(listSent(draft)).toEqual([
    { text: "c d", must_answer: true },
    { text: "b", must_answer: false },
  ]);
});

test("a new part never gets the identity of another one", () => {
  const draft = addItem(removeItem(addItem(beginDraft(aPlan("a", "b"))), 0));
  expect(new Set(draft.items.map(({ id }) => id)).size).toBe(3);
});

test("a draft has at most the parts that the server takes", () => {
  const full = beginDraft(aPlan(...Array.from({ length: MAX_ITEMS }, (_, at) => `part ${at}`)));
  expect(addItem(full).items).toHaveLength(MAX_ITEMS);
});

test("a draft without parts, with the same part twice, or without a change cannot be sent", () => {
  const plan = aPlan("a", "b");
  const draft = beginDraft(plan);
  expect(findProblem(draft, plan)).toBe("unchanged");
  expect(findProblem(addItem(draft), plan)).toBe("unchanged");
  expect(findProblem(changeItem(draft, 0, { text: "b " }), plan)).toBe("repeated");
  expect(findProblem(removeItem(removeItem(draft, 0), 1), plan)).toBe("empty");
  expect(findProblem(changeItem(draft, 0, { must_answer: true }), plan)).toBeNull();
});
