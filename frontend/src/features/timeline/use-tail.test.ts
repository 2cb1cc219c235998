// @vitest-environment jsdom

import { act, renderHook } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { useTail } from "./use-tail";

/** A scrolling element of 600 px with the given place and content height. */
function aScroller(scrollTop: number, scrollHeight: number) {
  const scroller = document.createElement("div");
  const place = (top: number, height: number) => {
    Object.defineProperty(scroller, "scrollHeight", { configurable: true, value: height });
    scroller.scrollTop = top;
  };
  place(scrollTop, scrollHeight);
  const scroll = (top: number, height: number) =>
    act(() => {
      place(top, height);
      scroller.dispatchEvent(new Event("scroll"));
    });
  return { scroller, scroll };
}

function follow(scroller: HTMLElement) {
  const scrollToEnd = vi.fn();
  const view = renderHook(
    ({ count, loaded }) => useTail({ scroller, count, loaded, active: true, startAtEnd: true, scrollToEnd }),
    {
      initialProps: { count: 10, loaded: 0 },
    },
  );
  scrollToEnd.mockClear();
  return { ...view, scrollToEnd };
}

test("rows that grow below a reader at the end do not stop the following", () => {
  const { scroller, scroll } = aScroller(0, 1_000);
  const { rerender, result, scrollToEnd } = follow(scroller);
  scroll(400, 1_200);
  rerender({ count: 11, loaded: 0 });
  expect(scrollToEnd).toHaveBeenCalledTimes(1);
  expect(result.current.unseen).toBe(0);
});

test("a reader who scrolls up stays there, and the new rows are counted", () => {
  const { scroller, scroll } = aScroller(0, 1_000);
  const { rerender, result, scrollToEnd } = follow(scroller);
  scroll(400, 1_000);
  scroll(100, 1_000);
  rerender({ count: 13, loaded: 0 });
  expect(scrollToEnd).not.toHaveBeenCalled();
  expect(result.current.unseen).toBe(3);
});

test("a reader at the end stays there when rows get their steps, and one who has scrolled up stays, too", () => {
  const { scroller, scroll } = aScroller(0, 1_000);
  const { rerender, scrollToEnd } = follow(scroller);
  rerender({ count: 10, loaded: 1 });
  expect(scrollToEnd).toHaveBeenCalledTimes(1);
  scroll(400, 1_000);
  scroll(100, 1_000);
  rerender({ count: 10, loaded: 2 });
  expect(scrollToEnd).toHaveBeenCalledTimes(1);
});
