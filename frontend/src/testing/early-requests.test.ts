// @vitest-environment jsdom

/** `public/start.js` repeats what the code of the page decides, because it runs before that code is loaded. */

import { readFileSync } from "node:fs";
import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { prefetchScreen } from "@/app/prefetch";
import { takeEarlyResponse } from "@/shared/api/early-responses";
import { fetchSteps } from "@/shared/api/runs";
import { chooseLanguage } from "@/shared/language/languages";
import { RUN_ID } from "@/testing/builders";

const SCRIPT = readFileSync("public/start.js", "utf8");
const textsOf = (language: string) => ({
  file: `/assets/first.${language}.json`,
  parts: [`/assets/main.${language}.json`, `/assets/run-page.${language}.json`],
});
const SCRIPTS = ["/assets/run-page.js", "/assets/steps.js"];
const TEXTS = { en: textsOf("en"), "zh-Hans": textsOf("zh-Hans") };

afterEach(() => {
  window.offingEarlyResponses = undefined;
  localStorage.clear();
});

/** The content of a file with the texts of several parts: each says its address. */
function textsAt(parts: readonly string[]): Record<string, object> {
  return Object.fromEntries(parts.map((path) => [path, { path }]));
}

/** Run the script on a page with this address, and return the addresses that it requests. */
function runScript(address: string, languages: readonly string[] = ["en"], texts: object | null = TEXTS): string[] {
  const requested: string[] = [];
  const fetched = (path: string) => {
    requested.push(path);
    const texts = Object.values(TEXTS).find(({ file }) => file === path);
    return Promise.resolve(Response.json(texts ? textsAt(texts.parts) : { path }));
  };
  const scripts = JSON.stringify(SCRIPTS);
  const script = { dataset: texts ? { texts: JSON.stringify(texts), scripts } : {} };
  const head = { append: ({ href }: HTMLLinkElement) => requested.push(new URL(href).pathname) };
  const createElement = (name: string) => document.createElement(name);
  const page = { currentScript: script, documentElement: document.documentElement, head, createElement };
  const run = new Function("document", "location", "navigator", "fetch", SCRIPT);
  run(page, new URL(address, "http://localhost"), { languages }, fetched);
  return requested;
}

/** The addresses that the code of the page requests first. */
async function requestedByCode(address: string): Promise<string[]> {
  const requested: string[] = [];
  window.offingEarlyResponses = undefined; // or the code would take the early responses instead
  vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
    const { pathname, search } = new URL((request as Request).url);
    requested.push(pathname + search);
    return Response.json({ items: [], next: null });
  });
  const { pathname, search } = new URL(address, "http://localhost");
  prefetchScreen(new QueryClient(), { pathname, search });
  if (search.includes("tab=timeline")) await fetchSteps(RUN_ID, 0);
  await new Promise((resolve) => setTimeout(resolve)); // a request is sent once its client has prepared it
  return requested;
}

test.each(["/", "/runs", "/runs?state=failed", `/runs/${RUN_ID}`, `/runs/${RUN_ID}?tab=timeline`, "/library"])(
  "%s requests early what its code requests first, with the same address",
  async (address) => {
    const early = runScript(address).filter((path) => path.startsWith("/api/"));
    expect(early).toEqual(await requestedByCode(address));
  },
);

test("a shared report and a page in development send no early request to the API", () => {
  expect(runScript("/shared/a-token")).toEqual([TEXTS.en.file, ...SCRIPTS]);
  expect(runScript("/", ["en"], null)).toEqual([]);
});

test("the scripts of the view are fetched after the first data, which would wait for a connection behind them", () => {
  expect(runScript("/runs").slice(-3)).toEqual([TEXTS.en.file, ...SCRIPTS]);
});

test.each([[["zh-CN", "en"]], [["zh-TW", "de"]], [["de", "zh-Hans-SG"]], [["not a tag"]], [[]]])(
  "with the languages %j the texts are those that the page shows",
  (languages) => {
    expect(runScript("/library", languages)).toContain(TEXTS[chooseLanguage(languages)].file);
  },
);

test("the language that a person has chosen comes before those of the browser", () => {
  localStorage.setItem("offing.language", "zh-Hans");
  expect(runScript("/library", ["en"])).toContain(TEXTS["zh-Hans"].file);
});

test("the code gets the texts of each part from the one file that has all of them", async () => {
  vi.spyOn(performance, "now").mockReturnValue(0);
  runScript("/library");
  for (const address of TEXTS.en.parts) {
    const response = await takeEarlyResponse(address);
    expect(await response?.json()).toEqual({ path: address });
  }
});

test("an early response is taken once, and not after its data may have changed", async () => {
  const clock = vi.spyOn(performance, "now").mockReturnValue(9_999);
  runScript("/library");
  const response = await takeEarlyResponse("/api/v1/session");
  expect(await response?.json()).toEqual({ path: "/api/v1/session" });
  expect(takeEarlyResponse("/api/v1/session")).toBeUndefined();
  clock.mockReturnValue(10_001);
  expect(takeEarlyResponse(TEXTS.en.parts[0] ?? "")).toBeUndefined();
});

test("the stored theme and density are applied before the first paint, and other values are not", () => {
  localStorage.setItem("offing.theme", "dark");
  localStorage.setItem("offing.density", "compact");
  runScript("/");
  expect({ ...document.documentElement.dataset }).toMatchObject({ theme: "dark", density: "compact" });
  delete document.documentElement.dataset.theme;
  delete document.documentElement.dataset.density;
  localStorage.setItem("offing.density", "tight");
  runScript("/");
  expect(document.documentElement.dataset.density).toBeUndefined();
  delete document.documentElement.dataset.theme;
});
