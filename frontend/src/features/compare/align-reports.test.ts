import { expect, test } from "vitest";
import { aReport, aSentence } from "@/testing/builders";
import { alignReports } from "./align-reports";

function report(...texts: string[]) {
  return aReport({
    title: "",
    answer: null,
    sections: [{ heading: "", sentences: texts.map((text) => aSentence({ text })) }],
  });
}

function summary(first: string[], second: string[]) {
  return alignReports(report(...first), report(...second)).map((row) => [
    row.kind,
    row.first?.text ?? null,
    row.second?.text ?? null,
  ]);
}

test("equal sentences stand beside each other, and each sentence of both reports occurs once", () => {
  expect(summary(["One.", "Two.", "Three."], ["Zero.", "One.", "Three."])).toEqual([
    ["second", null, "Zero."],
    ["same", "One.", "One."],
    ["first", "Two.", null],
    ["same", "Three.", "Three."],
  ]);
});

test("a sentence that was rewritten is a version of the other, with the words of its own", () => {
  const [row] = alignReports(
    report("The pool keeps eight connections open."),
    report("The pool keeps nine connections open."),
  );
  expect(row?.kind).toBe("changed");
  expect(row?.firstParts.filter(({ isOwn }) => isOwn).map(({ text }) => text)).toEqual(["eight"]);
  expect(row?.secondParts.filter(({ isOwn }) => isOwn).map(({ text }) => text)).toEqual(["nine"]);
  expect(row?.firstParts.map(({ text }) => text).join("")).toBe("The pool keeps eight connections open.");
});

test("sentences without common words are not versions of each other", () => {
  expect(summary(["Salt comes from rivers."], ["Pools grow slowly."])).toEqual([
    ["first", "Salt comes from rivers.", null],
    ["second", null, "Pools grow slowly."],
  ]);
});
