// @vitest-environment jsdom

/** The loading of texts beside the code of a view. */

import { beforeEach, expect, test, vi } from "vitest";

/** Requests for texts that a test answers, by language and view. */
const requests = vi.hoisted(() => new Map<string, { answer(texts: Record<string, string>): void; fail(): void }>());

vi.mock("virtual:view-texts", () => ({
  fetchTexts: (view: string, language: string) =>
    new Promise((resolve, reject) => {
      requests.set(`${language} ${view}`, { answer: resolve, fail: () => reject(new Error("gone")) });
    }),
}));

/** Answer the next request for the texts of a view. */
async function answer(language: string, view: string, texts: Record<string, string>) {
  await vi.waitFor(() => expect([...requests.keys()]).toContain(`${language} ${view}`));
  requests.get(`${language} ${view}`)?.answer(texts);
  requests.delete(`${language} ${view}`);
}

/** The module as a page that was just opened has it. */
async function freshPage() {
  vi.resetModules();
  const { loadView, showLanguage } = await import("./view-texts");
  const { i18n: current } = await import("@lingui/core");
  return { loadView, showLanguage, i18n: current };
}

async function englishPage() {
  const page = await freshPage();
  const shown = page.showLanguage("en");
  await answer("en", "main", { hello: "Hello" });
  await shown;
  return page;
}

beforeEach(() => requests.clear());

test("a view is ready when both its code and its texts are", async () => {
  const { loadView, i18n } = await englishPage();
  const ready = vi.fn();
  const view = loadView("library", async () => "code").then(ready);
  await vi.waitFor(() => expect(requests.size).toBe(1));
  expect(ready).not.toHaveBeenCalled();
  await answer("en", "library", { erase: "Erase" });
  await view;
  expect(ready).toHaveBeenCalledWith("code");
  expect([i18n._("hello"), i18n._("erase")]).toEqual(["Hello", "Erase"]);
});

test("a change of the language loads the texts of all opened views before anything changes", async () => {
  const { loadView, showLanguage, i18n } = await englishPage();
  const view = loadView("library", async () => "code");
  await answer("en", "library", { erase: "Erase" });
  await view;
  const change = showLanguage("zh-Hans");
  await answer("zh-Hans", "main", { hello: "你好" });
  expect([i18n.locale, i18n._("hello")]).toEqual(["en", "Hello"]);
  await answer("zh-Hans", "library", { erase: "彻底删除" });
  await change;
  expect([i18n.locale, i18n._("hello"), i18n._("erase")]).toEqual(["zh-Hans", "你好", "彻底删除"]);
});

test("a view that is opened during a change of the language has its texts before and after it", async () => {
  const { loadView, showLanguage, i18n } = await englishPage();
  const change = showLanguage("zh-Hans");
  const view = loadView("library", async () => "code");
  await answer("zh-Hans", "main", { hello: "你好" });
  await answer("en", "library", { erase: "Erase" });
  await view;
  expect([i18n.locale, i18n._("erase")]).toEqual(["en", "Erase"]);
  await answer("zh-Hans", "library", { erase: "彻底删除" });
  await change;
  expect([i18n.locale, i18n._("erase")]).toEqual(["zh-Hans", "彻底删除"]);
});

test("of two languages the one that was asked for last is shown, whichever is loaded first", async () => {
  const { showLanguage, i18n } = await freshPage();
  const first = showLanguage("zh-Hans");
  const second = showLanguage("en");
  await answer("en", "main", { hello: "Hello" });
  await second;
  await answer("zh-Hans", "main", { hello: "你好" });
  await first;
  expect([i18n.locale, document.documentElement.lang]).toEqual(["en", "en"]);
});

test("texts that cannot be loaded fail the view, are reported as code is, and are fetched again", async () => {
  const { loadView } = await englishPage();
  const reported = vi.fn();
  addEventListener("vite:preloadError", reported, { once: true });
  const view = loadView("library", async () => "code");
  await vi.waitFor(() => expect(requests.size).toBe(1));
  requests.get("en library")?.fail();
  await expect(view).rejects.toThrow("gone");
  expect(reported).toHaveBeenCalled();
  requests.clear();
  const again = loadView("library", async () => "code");
  await answer("en", "library", {});
  await expect(again).resolves.toBe("code");
});
