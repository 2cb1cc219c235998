import { expect, test } from "vitest";
import { aReport } from "@/testing/builders";
import { headOf, oneLine, reflowed, tailOf } from "./excerpt";
import { placeCard } from "./place";
import { allSentences, unsupported } from "./unsupported";

test("surroundings are cut at words", () => {
  expect(tailOf("one two three", 8)).toBe("… three");
  expect(headOf("one two three", 9)).toBe("one two …");
  expect(tailOf("short", 8)).toBe("short");
  expect(headOf("short", 8)).toBe("short");
});

test("lines broken by hand flow, paragraphs and lists stay", () => {
  expect(reflowed("one\ntwo\n\nthree\n- four\n* five")).toBe("one two\n\nthree\n- four\n* five");
  expect(oneLine(" one\n\n two ")).toBe(" one two ");
});

test("a card goes under its number, or above where there is no room, and never out of the window", () => {
  const view = { width: 1000, height: 800 };
  const card = { width: 400, height: 200 };
  expect(placeCard({ left: 300, top: 100, bottom: 116 }, card, view)).toEqual({ left: 276, top: 124, maxHeight: 664 });
  expect(placeCard({ left: 300, top: 700, bottom: 716 }, card, view)).toEqual({
    left: 276,
    bottom: 108,
    maxHeight: 680,
  });
  expect(placeCard({ left: 990, top: 100, bottom: 116 }, card, view).left).toBe(588);
  expect(placeCard({ left: 0, top: 100, bottom: 116 }, card, view).left).toBe(12);
});

test("the answer counts as a sentence, and unsupported ones are found", () => {
  expect(allSentences(aReport()).map((sentence) => sentence.id)).toEqual(["s1", "s2"]);
  expect(unsupported(aReport()).map((sentence) => sentence.id)).toEqual(["s2"]);
  expect(allSentences(aReport({ answer: null }))).toHaveLength(1);
});
