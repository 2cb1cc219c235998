import { expect, test } from "vitest";
import { describeFollowUp, listChanges } from "./changes";

const SECTION = { kind: "changed" as const, heading: "Rivers", before: "Streams", sentences: [] };

test("changes are listed by section, with the sentences of changed ones", () => {
  const lines = listChanges({
    title_before: "Old",
    answer: [{ kind: "changed", text: "New answer.", before: "Old answer." }],
    sections: [
      { ...SECTION, sentences: [{ kind: "changed", text: "Same.", before: "Same." }] },
      { kind: "added", heading: "", before: "", sentences: [{ kind: "added", text: "It is new.", before: "" }] },
      { kind: "removed", heading: "Lakes", before: "", sentences: [] },
    ],
    kept_sections: 2,
  });
  expect(lines.map((line) => line.text)).toEqual([
    "Title changed, before: Old",
    "Short answer",
    "Changed: New answer. (before: Old answer.)",
    "Section changed: Rivers, before: Streams",
    "Other sources: Same.",
    "Section added: Section without a heading (1 sentence)",
    "Section removed: Lakes",
    "2 sections unchanged",
  ]);
});

test("a report without changes says so", () => {
  expect(listChanges({ title_before: "", answer: [], sections: [], kept_sections: 3 })).toEqual([
    { text: "Nothing changed.", level: 0 },
  ]);
});

test("the kind of a follow-up is described with who chose it", () => {
  const outcome = { run_id: "r", version: 1, changes: null, deleted_sources: [], unchanged_because: "" };
  expect(describeFollowUp({ ...outcome, kind: "edit", chosen_by: "rules" })).toBe(
    "This is an edited version of an earlier report, as rules chose by its words.",
  );
});
