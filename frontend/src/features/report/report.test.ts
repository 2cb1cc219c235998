import { expect, test } from "vitest";
import { aReport, aSentence } from "@/testing/builders";
import { positionCard } from "./card-position";
import { collapseWhitespace, reflow, truncateEnd, truncateStart } from "./excerpt";
import { hasSupport, listClaims, listPremises, listSentences, listUnsupported, sentenceMark } from "./sentence-marks";

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

test("a mark has the reasons of rules and checker, and a long one is cut in the text", () => {
  expect(sentenceMark(aSentence())).toBeNull();
  const rejected = ["E9 was not retrieved."];
  expect(sentenceMark(aSentence({ supported: false, rule_verdict: "not_found", rejected }))).toEqual({
    label: "no source",
    reason: "no source; E9 was not retrieved.",
    isConclusion: false,
  });
  const reason = "another year ".repeat(9);
  const judgment = { verdict: "contradicted", reason, passage: 2, contradiction: 2 } as const;
  const mark = sentenceMark(aSentence({ supported: false, judgment }));
  expect(mark?.label).toHaveLength(61);
  expect(mark?.reason).toBe(`checker: contradicted by [2]: ${reason}`);
});

test("a conclusion is no unsupported sentence, and leads to the sentences that it follows from", () => {
  const premise = aSentence({ id: "s1", text: "The Heron carries 40 cars.", citations: [1] });
  const conclusion = aSentence({
    id: "s2",
    text: "Therefore the Heron is larger.",
    supported: false,
    verdict: "conclusion",
    follows_from: ["s1"],
    reasons: ["conclusion from [1]"],
  });
  const report = aReport({ answer: null, sections: [{ heading: "", sentences: [premise, conclusion] }] });
  expect(listUnsupported(report)).toEqual([]);
  expect(listClaims(report)).toEqual([premise, conclusion]);
  expect(listPremises(report, conclusion)).toEqual([premise]);
  expect(sentenceMark(conclusion)).toMatchObject({ label: "conclusion", isConclusion: true });
});
