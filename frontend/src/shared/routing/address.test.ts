import { expect, test } from "vitest";
import { parseSearch, writeAddress, writeSearch } from "./address";

test.each([
  [{ q: "tides & pools" }, "?q=tides+%26+pools"],
  [{ step: 3 }, "?step=3"],
  [{ q: "3" }, "?q=%223%22"],
  [{ pinned: true }, "?pinned=true"],
  [{ q: "true" }, "?q=%22true%22"],
  [{ cite: [1, 2] }, "?cite=%5B1%2C2%5D"],
  [{ q: "为什么海水是咸的？100%" }, undefined],
  [{ q: '"quoted"' }, undefined],
  [{ q: "1e3" }, undefined],
  [{ q: undefined }, ""],
  [{}, ""],
])("the parameters %j are read from the address as they were written", (search, text) => {
  const written = writeSearch(search);
  if (text !== undefined) expect(written).toBe(text);
  expect(parseSearch(written)).toEqual(JSON.parse(JSON.stringify(search)));
});

test("a text that an address holds without quotation marks is read as text", () => {
  expect(parseSearch("?tab=timeline&q=one%20two&only=")).toEqual({ tab: "timeline", q: "one two", only: "" });
});

test("what a variable part of a path contains cannot lead to another view", () => {
  const address = writeAddress({ to: "/runs/$runId", params: { runId: "../settings?x#y" }, search: { tab: "cost" } });
  expect(address).toBe("/runs/..%2Fsettings%3Fx%23y?tab=cost");
});
