import { render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { Tabs } from "./tabs";

const TABS = ["first", "second", "third"].map((key) => ({ key, label: key }));

/** Give the row 200 px and each tab 100 px, which jsdom does not lay out. */
function layOut(): void {
  Element.prototype.getBoundingClientRect = function measure(this: Element) {
    const at = TABS.findIndex(({ key }) => key === this.textContent);
    if (at < 0) return new DOMRect(0, 0, 200, 40);
    return new DOMRect(at * 100 - (this.parentElement?.scrollLeft ?? 0), 0, 100, 40);
  };
}

test("the selected tab of a narrow row is scrolled into sight, on load and when another is selected", () => {
  const original = Element.prototype.getBoundingClientRect;
  layOut();
  try {
    const show = (selected: string) => (
      <Tabs label="Views" tabs={TABS} selected={selected} onSelect={() => undefined} />
    );
    const { rerender } = render(show("third"));
    const list = screen.getByRole("tablist");
    expect(list.scrollLeft).toBe(124);
    rerender(show("second"));
    expect(list.scrollLeft).toBe(76);
  } finally {
    Element.prototype.getBoundingClientRect = original;
  }
});

test("the selected tab stays in sight when its row becomes narrower", () => {
  const original = Element.prototype.getBoundingClientRect;
  const resized: (() => void)[] = [];
  class Observer {
    constructor(tell: () => void) {
      resized.push(tell);
    }
    observe() {}
    disconnect() {}
  }
  vi.stubGlobal("ResizeObserver", Observer);
  try {
    render(<Tabs label="Views" tabs={TABS} selected="third" onSelect={() => undefined} />);
    const list = screen.getByRole("tablist");
    expect(list.scrollLeft).toBe(0);
    layOut();
    for (const tell of resized) tell();
    expect(list.scrollLeft).toBe(124);
  } finally {
    Element.prototype.getBoundingClientRect = original;
    vi.unstubAllGlobals();
  }
});
