import { expect, test } from "vitest";
import { aRoleCall } from "@/testing/builders";
import { buildTokenRows, surpriseLevel, visibleText } from "./token-rows";

test("each token has its loss mask, log-probability and span", () => {
  expect(buildTokenRows(aRoleCall()).map(({ id, trained, logprob, span }) => [id, trained, logprob, span])).toEqual([
    [7, true, -0.01, "memory_edit"],
    [8, false, -1.2, "memory_edit"],
    [9, true, -4, ""],
  ]);
});

test("a role call without token ids has no rows", () => {
  expect(buildTokenRows(aRoleCall({ tokens: null }))).toEqual([]);
});

test("spaces, line breaks and empty tokens are visible", () => {
  const [row] = buildTokenRows(aRoleCall());
  const texts = ["a b\n", "", null].map((piece) => row && visibleText({ ...row, text: piece }));
  expect(texts).toEqual(["a·b⏎", "∅", "7"]);
});

test("a less likely token has a higher surprise level", () => {
  expect([0, -0.5, -1, -2, -9].map(surpriseLevel)).toEqual([0, 1, 2, 3, 4]);
});
