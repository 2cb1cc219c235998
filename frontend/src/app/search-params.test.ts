import { expect, test } from "vitest";
import { librarySearch, runSearch } from "./search-params";

test("unknown and invalid parameters of an address are dropped", () => {
  expect(runSearch({ tab: "report", step: 12, only: "sr", cite: [3, "x", -1] })).toEqual({
    tab: "report",
    step: 12,
    only: "sr",
    cite: [3],
  });
  expect(runSearch({ tab: "nothing", step: "12", only: "<b>", cite: "3", more: 1 })).toEqual({});
});

test("the collection of single files has an empty name, which is not the same as none", () => {
  expect(librarySearch({ collection: "" })).toEqual({ collection: "" });
  expect(librarySearch({ source: 3 })).toEqual({});
});
