import { expect, test } from "vitest";
import { buildPlanItems } from "./plan-items";

test("an item lasts until the next one, and the last is in progress while the run is active", () => {
  expect(buildPlanItems([3, 9], 12, true)).toEqual([
    { seq: 3, steps: 6, state: "done" },
    { seq: 9, steps: 4, state: "now" },
  ]);
  expect(buildPlanItems([3, 9], 12, false).at(-1)?.state).toBe("done");
  expect(buildPlanItems([], 2, true)).toEqual([]);
});
