import { http } from "msw";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type CodeUpdateEffects, findEntryScript, recoverFromUpdate, watchCodeUpdates } from "@/app/code-update";
import { storeDraft } from "@/shared/ui/drafts";
import { watchTypedFields } from "@/shared/ui/unsaved-input";
import { getUpload } from "@/shared/upload/upload";
import { at, server } from "@/testing/server";

const html = (entry: string) => `<head><script src="/start.js"></script><script type="module" src="${entry}"></script>`;

function anUpdate(part: Partial<CodeUpdateEffects> = {}) {
  const reload = vi.fn();
  const effects: CodeUpdateEffects = {
    fetchIndex: async () => html("/assets/index-new.js"),
    loadedEntry: () => "/assets/index-old.js",
    reload,
    ...part,
  };
  return { effects, reload };
}

let unwatch: () => void = () => undefined;
beforeEach(() => {
  unwatch = watchTypedFields();
});
afterEach(() => {
  unwatch();
  document.body.replaceChildren();
});

function typeIntoField(value: string): void {
  const field = document.createElement("textarea");
  document.body.append(field);
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

test("the entry script is read from the built page", () => {
  expect(findEntryScript(html("/assets/index-abc.js"))).toBe("/assets/index-abc.js");
  expect(findEntryScript("<p>Not built</p>")).toBeNull();
});

test("after an update the page is reloaded once, and not again for the same version", async () => {
  const { effects, reload } = anUpdate();
  expect(await recoverFromUpdate(effects)).toBe(true);
  expect(await recoverFromUpdate(effects)).toBe(false);
  expect(reload).toHaveBeenCalledTimes(1);
  expect(await recoverFromUpdate({ ...effects, fetchIndex: async () => html("/assets/index-newer.js") })).toBe(true);
});

test("code that is missing without an update does not reload the page", async () => {
  const { effects, reload } = anUpdate({ loadedEntry: () => "/assets/index-new.js" });
  expect(await recoverFromUpdate(effects)).toBe(false);
  expect(await recoverFromUpdate({ ...effects, fetchIndex: () => Promise.reject(new TypeError("down")) })).toBe(false);
  expect(await recoverFromUpdate({ ...effects, fetchIndex: async () => "" })).toBe(false);
  expect(reload).not.toHaveBeenCalled();
});

test("typed text that no draft contains prevents the reload, and a stored draft does not", async () => {
  const { effects, reload } = anUpdate();
  typeIntoField('How does "pooling" work?\nIn detail.');
  expect(await recoverFromUpdate(effects)).toBe(false);
  storeDraft("question", 'How does "pooling" work?\nIn detail.');
  expect(await recoverFromUpdate(effects)).toBe(true);
  expect(reload).toHaveBeenCalledTimes(1);
});

test("a field that was removed from the page does not prevent the reload", async () => {
  const { effects } = anUpdate();
  typeIntoField("sent");
  document.body.replaceChildren();
  expect(await recoverFromUpdate(effects)).toBe(true);
});

test("an upload is not interrupted by a reload", async () => {
  const { effects, reload } = anUpdate();
  server.use(http.post(at("/library"), () => new Promise<never>(() => undefined)));
  getUpload("question.documents").send([{ folder: "", files: [{ name: "a.md", file: new File(["a"], "a.md") }] }], "");
  await vi.waitFor(() => expect(getUpload("question.documents").state().busy).toBe(true));
  expect(await recoverFromUpdate(effects)).toBe(false);
  expect(reload).not.toHaveBeenCalled();
});

test("Vite's event starts the recovery", async () => {
  const { effects, reload } = anUpdate();
  const stop = watchCodeUpdates(effects);
  dispatchEvent(new Event("vite:preloadError"));
  await vi.waitFor(() => expect(reload).toHaveBeenCalledTimes(1));
  stop();
});
