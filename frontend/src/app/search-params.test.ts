import { expect, test } from "vitest";
import { homeSearch, librarySearch, runSearch } from "./search-params";

test("unknown and invalid parameters of an address are dropped", () => {
  expect(runSearch({ tab: "report", step: 12, only: "sr", cite: [3, "x", -1] })).toEqual({
    tab: "report",
    step: 12,
    only: "sr",
    cite: [3],
  });
  expect(runSearch({ tab: "nothing", step: "12", only: "<b>", cite: "3", more: 1 })).toEqual({});
});

test("a preset in an address is an id", () => {
  const preset = "00000000-0000-4000-8000-000000000001";
  expect(homeSearch({ preset, ask: "Why?" })).toEqual({ preset, ask: "Why?" });
  expect(homeSearch({ preset: "<b>" })).toEqual({});
  expect(homeSearch({ ask: "a".repeat(8000) }).ask).toHaveLength(8000);
});

test("the collection of single files has an empty name, which is not the same as none", () => {
  expect(librarySearch({ collection: "" })).toEqual({ collection: "" });
  expect(librarySearch({ source: 3 })).toEqual({});
});
