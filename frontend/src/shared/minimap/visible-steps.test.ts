import { expect, test, vi } from "vitest";
import { VisibleSteps } from "./visible-steps";

test("listeners hear of a range that differs, and not of one that is the same", () => {
  const visible = new VisibleSteps();
  const changed = vi.fn();
  const stop = visible.subscribe(changed);
  visible.set([1, 20]);
  visible.set([1, 20]);
  expect(changed).toHaveBeenCalledTimes(1);
  visible.set(null);
  expect(changed).toHaveBeenCalledTimes(2);
  stop();
  visible.set([3, 9]);
  expect(changed).toHaveBeenCalledTimes(2);
  expect(visible.get()).toEqual([3, 9]);
});
