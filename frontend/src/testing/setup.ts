import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterAll, afterEach, beforeAll, vi } from "vitest";
import { forgetReach } from "@/shared/api/reach";
import { forgetUploads } from "@/shared/upload/upload";
import { server } from "./server";

// A view that is loaded when it is first opened may take longer on a busy machine than the library's second.
configure({ asyncUtilTimeout: 20_000 });

// What jsdom lacks and the page asks for. Sizes are fixed, so that virtual lists have something to fill.
class Sizes implements ResizeObserver {
  constructor(private readonly tell: ResizeObserverCallback) {}
  observe(target: Element) {
    const box = { width: 800, height: 600 } as DOMRectReadOnly;
    this.tell(
      [{ target, contentRect: box, borderBoxSize: [], contentBoxSize: [], devicePixelContentBoxSize: [] }],
      this,
    );
  }
  unobserve() {}
  disconnect() {}
}
class Sights implements IntersectionObserver {
  readonly root = null;
  readonly rootMargin = "";
  readonly scrollMargin = "";
  readonly thresholds = [];
  constructor(private readonly tell: IntersectionObserverCallback) {}
  observe(target: Element) {
    this.tell([{ isIntersecting: true, target } as IntersectionObserverEntry], this);
  }
  unobserve() {}
  disconnect() {}
  takeRecords() {
    return [];
  }
}
vi.stubGlobal("ResizeObserver", Sizes);
vi.stubGlobal("IntersectionObserver", Sights);
vi.stubGlobal("matchMedia", (media: string) => ({
  media,
  matches: false,
  addEventListener() {},
  removeEventListener() {},
}));
Element.prototype.scrollIntoView = () => undefined;
Element.prototype.scrollTo = () => undefined;
window.scrollTo = () => undefined;
HTMLDialogElement.prototype.showModal = function show(this: HTMLDialogElement) {
  this.open = true;
};
for (const name of ["clientHeight", "offsetHeight"] as const) {
  Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => 600 });
}
for (const name of ["clientWidth", "offsetWidth"] as const) {
  Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => 800 });
}

beforeAll(() => server.listen({ onUnhandledRequest: "error" }));
afterEach(() => {
  cleanup();
  forgetReach();
  forgetUploads();
  server.resetHandlers();
  sessionStorage.clear();
});
afterAll(() => server.close());
