import { expect, test } from "vitest";
import { aReport, aSentence, TEXT_ID } from "@/testing/builders";
import {
  applyAction,
  buildEditRequest,
  changeHistory,
  type EditAction,
  editFromReport,
  findProblemKey,
  isChanged,
  listOriginals,
  listSentenceBlocks,
  redo,
  startHistory,
  undo,
} from "./edit-model";

const REPORT = aReport({
  sections: [
    {
      heading: "Details",
      sentences: [
        aSentence({ id: "s2", text: "It is fast. It is old.", citations: [1, 2], passages: [3] }),
        aSentence({ id: "s3", text: "Nobody knows.", citations: [2] }),
      ],
    },
    { heading: "", sentences: [aSentence({ id: "s4", text: "A | B", layout: "header" })] },
  ],
});
const EDIT = editFromReport(REPORT);
const VERSIONS = { base: 1, latest: 1 };

const textsOf = (edit = EDIT) => listSentenceBlocks(edit).map((block) => block.text);
const citationsOf = (key: string, edit = EDIT) =>
  listSentenceBlocks(edit)
    .find((block) => block.key === key)
    ?.citations.map((one) => (one.kind === "numbered" ? one.number : one.quote));
const apply = (...actions: EditAction[]) => actions.reduce(applyAction, EDIT);

test("a report becomes blocks and back without a change", () => {
  const request = buildEditRequest(EDIT, VERSIONS, " Why ");
  expect(request).toMatchObject({ base_version: 1, latest_version: 1, note: "Why", title: REPORT.title });
  expect(request.sections.map((section) => [section.heading, section.sentences.length])).toEqual([
    ["Details", 2],
    ["", 1],
  ]);
  expect(request.sections[0]?.sentences[0]).toEqual({
    id: "s2",
    text: "It is fast. It is old.",
    layout: "statement",
    citations: [1, 2, 3],
  });
  const originals = listOriginals(REPORT);
  expect(listSentenceBlocks(EDIT).filter((block) => isChanged(block, originals))).toEqual([]);
});

test("text, headings and order change, also across sections, and empty sentences are not saved", () => {
  const edit = apply(
    { type: "text", key: "h0", text: "Facts" },
    { type: "move", key: "s3", by: 1 },
    { type: "text", key: "s2", text: "  " },
    { type: "title", text: "Pools" },
  );
  expect(buildEditRequest(edit, VERSIONS, "")).toMatchObject({
    title: "Pools",
    sections: [
      { heading: "Facts", sentences: [] },
      { heading: "", sentences: [{ id: "s3" }, { id: "s4" }] },
    ],
  });
  expect(apply({ type: "move", key: "h0", by: -1 })).toBe(EDIT);
});

test("a citation moves within its sentence and then to the next one, and never gets lost", () => {
  expect(citationsOf("s2", apply({ type: "moveCitation", key: "s2", at: 0, by: 1 }))).toEqual([2, 1, 3]);
  const moved = apply({ type: "moveCitation", key: "s2", at: 2, by: 1 });
  expect([citationsOf("s2", moved), citationsOf("s3", moved)]).toEqual([
    [1, 2],
    [3, 2],
  ]);
  const back = applyAction(moved, { type: "moveCitation", key: "s3", at: 0, by: -1 });
  expect(citationsOf("s2", back)).toEqual([1, 2, 3]);
  const first = listSentenceBlocks(EDIT)[0]?.key ?? "";
  expect(apply({ type: "moveCitation", key: first, at: 0, by: -1 })).toBe(EDIT);
});

test("a citation that moves to a sentence that has it stays there once", () => {
  const edit = apply({ type: "moveCitation", key: "s3", at: 0, by: -1 });
  expect([citationsOf("s2", edit), citationsOf("s3", edit)]).toEqual([[1, 2, 3], []]);
});

test("a removed citation is gone from its sentence only, and a new one is sent with its words", () => {
  const passage = { text_id: TEXT_ID, start: 0, end: 20 };
  const edit = apply(
    { type: "uncite", key: "s2", at: 1 },
    { type: "cite", key: "s3", citation: { kind: "new", passage, quote: "keeps one", title: "Client" } },
  );
  const [first, second] = buildEditRequest(edit, VERSIONS, "").sections[0]?.sentences ?? [];
  expect(first?.citations).toEqual([1, 3]);
  expect(second?.citations).toEqual([2, { passage, quote: "keeps one" }]);
});

test("both halves of a split sentence keep its citations, and joining them loses none", () => {
  const split = apply({ type: "split", key: "s2", at: 11, newKey: "n" });
  expect(textsOf(split).slice(1, 3)).toEqual(["It is fast.", "It is old."]);
  expect(citationsOf("n", split)).toEqual([1, 2, 3]);
  const joined = applyAction(split, { type: "join", key: "n" });
  expect([textsOf(joined), citationsOf("s2", joined)]).toEqual([textsOf(), [1, 2, 3]]);
  const atEnd = apply({ type: "split", key: "s2", at: 22, newKey: "n" });
  expect(citationsOf("n", atEnd)).toEqual([]);
  expect(apply({ type: "join", key: "s2" })).toBe(EDIT);
});

test("added blocks stand after their neighbor and continue its form", () => {
  const row = apply({ type: "add", kind: "sentence", after: "s4", key: "n" });
  expect(row.blocks.at(-1)).toMatchObject({ key: "n", id: null, layout: "row" });
  const heading = apply({ type: "add", kind: "heading", after: "s2", key: "h" });
  expect(heading.blocks.map((block) => block.key)).toEqual(["h0", "s2", "h", "s3", "h1", "s4"]);
});

test("removing the short answer keeps the sections", () => {
  const request = buildEditRequest(apply({ type: "remove", key: "s1" }, { type: "remove", key: "s3" }), VERSIONS, "");
  expect(request.answer).toBeNull();
  expect(request.sections[0]?.sentences).toHaveLength(1);
});

test("undo reverts typing in one field as a whole, and redo repeats it", () => {
  let history = startHistory(EDIT);
  for (const text of ["P", "Po"]) history = changeHistory(history, { type: "title", text });
  history = changeHistory(history, { type: "remove", key: "s3" });
  expect(history.past).toHaveLength(2);
  history = undo(undo(history));
  expect(history.present).toBe(EDIT);
  history = redo(history);
  expect([history.present.title, textsOf(history.present)]).toEqual(["Po", textsOf()]);
  expect(undo(startHistory(EDIT)).present).toBe(EDIT);
});

test("a problem of the server leads to its sentence, also after empty ones", () => {
  expect(findProblemKey(EDIT, "sections.0.sentences.1.citations")).toBe("s3");
  expect(findProblemKey(EDIT, "sections.1.sentences.0.text")).toBe("s4");
  expect(findProblemKey(apply({ type: "text", key: "s2", text: "" }), "sections.0.sentences.0")).toBe("s3");
  expect(findProblemKey(EDIT, "answer.citations")).toBe("s1");
  expect(findProblemKey(EDIT, "note")).toBeNull();
});
