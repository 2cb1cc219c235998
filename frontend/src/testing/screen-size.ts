import { onTestFinished, vi } from "vitest";

/** Behave as on a phone until the test ends. */
export function usePhone(): void {
  const wide = globalThis.matchMedia;
  onTestFinished(() => {
    vi.stubGlobal("matchMedia", wide);
  });
  vi.stubGlobal("matchMedia", (media: string) => ({
    media,
    matches: media === "(max-width: 900px)",
    addEventListener() {},
    removeEventListener() {},
  }));
}
