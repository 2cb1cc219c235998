import { expect, test } from "vitest";
import { aTurn } from "@/testing/builders";
import { surprise, tokenRows, visible } from "./token-rows";

test("each completion id stands beside its mask, log-probability and part", () => {
  expect(tokenRows(aTurn()).map(({ id, trained, logprob, span }) => [id, trained, logprob, span])).toEqual([
    [7, true, -0.01, "memory_edit"],
    [8, false, -1.2, "memory_edit"],
    [9, true, -4, ""],
  ]);
});

test("a turn without ids has no rows", () => {
  expect(tokenRows(aTurn({ tokens: null }))).toEqual([]);
});

test("blanks, line breaks and tokens that decode to nothing can be seen", () => {
  const [row] = tokenRows(aTurn());
  const shown = ["a b\n", "", null].map((piece) => row && visible({ ...row, piece }));
  expect(shown).toEqual(["a·b⏎", "∅", "7"]);
});

test("a less likely token is a greater surprise", () => {
  expect([0, -0.5, -1, -2, -9].map(surprise)).toEqual([0, 1, 2, 3, 4]);
});
