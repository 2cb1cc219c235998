import { expect, test } from "vitest";
import type { Sentence } from "@/shared/api/reports";
import { aSentence } from "@/testing/builders";
import { groupSentences, splitCells } from "./report-blocks";

function sentences(...layouts: Sentence["layout"][]): Sentence[] {
  return layouts.map((layout, at) => aSentence({ id: `s${at}`, text: `Text ${at}.`, citations: [1], layout }));
}

test("sentences of one paragraph, list or table are one block, and statements stay together", () => {
  const all = sentences(
    "statement",
    "statement",
    "paragraph",
    "continued",
    "paragraph",
    "item",
    "item",
    "header",
    "row",
  );
  const blocks = groupSentences(all).map((block) => `${block.kind} ${block.sentences.length}`);
  expect(blocks).toEqual(["prose 2", "prose 2", "prose 1", "list 2", "table 2"]);
});

test("a row is split at its bars, and an escaped bar belongs to its cell", () => {
  expect(splitCells("| a | b \\| c |")).toEqual(["a", "b | c"]);
  expect(splitCells("a|b")).toEqual(["a", "b"]);
});
