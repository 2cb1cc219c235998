import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterAll, afterEach, beforeAll, vi } from "vitest";
import { resetServerStatus } from "@/shared/api/server-status";
import { cancelUploads } from "@/shared/upload/upload";
import { server } from "./server";

// On a busy machine, loading a view can take longer than the library's default of one second.
configure({ asyncUtilTimeout: 20_000 });

// Browser features that jsdom lacks. Sizes are fixed, so that virtual lists have something to fill.
class FixedResizeObserver implements ResizeObserver {
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
class AlwaysVisibleObserver implements IntersectionObserver {
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
vi.stubGlobal("ResizeObserver", FixedResizeObserver);
vi.stubGlobal("IntersectionObserver", AlwaysVisibleObserver);
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
  resetServerStatus();
  cancelUploads();
  server.resetHandlers();
  sessionStorage.clear();
});
afterAll(() => server.close());
