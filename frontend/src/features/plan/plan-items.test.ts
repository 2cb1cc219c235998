import { expect, test } from "vitest";
import { planItems } from "./plan-items";

test("an item lasts until the next one; the last is under way while the run is", () => {
  expect(planItems([3, 9], 12, true)).toEqual([
    { seq: 3, steps: 6, state: "done" },
    { seq: 9, steps: 4, state: "now" },
  ]);
  expect(planItems([3, 9], 12, false).at(-1)?.state).toBe("done");
  expect(planItems([], 2, true)).toEqual([]);
});
