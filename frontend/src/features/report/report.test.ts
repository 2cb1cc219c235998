import { expect, test } from "vitest";
import { aReport, aSentence } from "@/testing/builders";
import { positionCard } from "./card-position";
import { collapseWhitespace, reflow, truncateEnd, truncateStart } from "./excerpt";
import { hasSupport, listSentences, listUnsupported, sentenceMark } from "./unsupported";

test("context is truncated at word boundaries", () => {
  expect(truncateStart("one two three", 8)).toBe("… three");
  expect(truncateEnd("one two three", 9)).toBe("one two …");
  expect(truncateStart("short", 8)).toBe("short");
  expect(truncateEnd("short", 8)).toBe("short");
});

test("lines broken by hand are joined, paragraphs and lists are kept", () => {
  expect(reflow("one\ntwo\n\nthree\n- four\n* five")).toBe("one two\n\nthree\n- four\n* five");
  expect(collapseWhitespace(" one\n\n two ")).toBe(" one two ");
});

test("a card is below its marker, or above it if there is no room, and always inside the window", () => {
  const view = { width: 1000, height: 800 };
  const card = { width: 400, height: 200 };
  expect(positionCard({ left: 300, top: 100, bottom: 116 }, card, view)).toEqual({
    left: 276,
    top: 124,
    maxHeight: 664,
  });
  expect(positionCard({ left: 300, top: 700, bottom: 716 }, card, view)).toEqual({
    left: 276,
    bottom: 108,
    maxHeight: 680,
  });
  expect(positionCard({ left: 990, top: 100, bottom: 116 }, card, view).left).toBe(588);
  expect(positionCard({ left: 0, top: 100, bottom: 116 }, card, view).left).toBe(12);
});

test("the answer counts as a sentence, and unsupported sentences are listed", () => {
  expect(listSentences(aReport()).map((sentence) => sentence.id)).toEqual(["s1", "s2"]);
  expect(listUnsupported(aReport()).map((sentence) => sentence.id)).toEqual(["s2"]);
  expect(listSentences(aReport({ answer: null }))).toHaveLength(1);
});

test("the header of a table supports nothing", () => {
  const header = aSentence({ layout: "header", supported: true });
  const row = aSentence({ layout: "row", supported: false });
  const report = aReport({ answer: null, sections: [{ heading: "Ferries", sentences: [header, row] }] });
  expect(hasSupport(report)).toBe(false);
  expect(hasSupport(aReport())).toBe(true);
});

test("a mark names the words that no quote contains, or says that only a passage is named", () => {
  expect(sentenceMark(aSentence())).toBeNull();
  const partly = sentenceMark(aSentence({ citations: [1], supported: false, unsupported_values: ["42%", "Ada Lund"] }));
  expect(partly?.label).toBe("not in the quotes: 42%, Ada Lund");
  expect(partly?.reason).toContain("no calculation of the run gives it");
  expect(sentenceMark(aSentence({ passages: [2], supported: false }))?.label).toBe("passage only");
  expect(sentenceMark(aSentence({ supported: false, rejected: ["E9 was not retrieved."] }))).toEqual({
    label: "no source",
    reason: "E9 was not retrieved.",
  });
});

test("a mark says what the checker objects to, if the rules did not", () => {
  const judgment = { verdict: "contradicted", reason: "Another year.", passage: 1, contradiction: 2 } as const;
  const lowered = aSentence({ citations: [1], supported: false, verdict: "contradicted", judgment });
  expect(sentenceMark(lowered)?.label).toBe("contradicted");
  expect(sentenceMark(lowered)?.reason).toContain("Another year.");
  const known = aSentence({
    ...lowered,
    verdict: "partly",
    rule_verdict: "partly",
    unsupported_values: ["42"],
    judgment: { ...judgment, verdict: "partly" },
  });
  expect(sentenceMark(known)?.label).toBe("not in the quotes: 42");
});
