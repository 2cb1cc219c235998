import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";
import { expect, test } from "vitest";
import { LANGUAGES } from "@/shared/language/languages";
import { messages } from "../../vite-messages.ts";

const FIXTURE = join(import.meta.dirname, "untranslated");

function buildCatalog(language: string) {
  return build({
    configFile: false,
    logLevel: "silent",
    plugins: [messages(join(FIXTURE, "lingui.config.ts"))],
    build: { write: false, lib: { entry: join(FIXTURE, `${language}.po`), formats: ["es"] } },
  });
}

test("a catalog without a translation cannot be built", async () => {
  await expect(buildCatalog("fr")).rejects.toThrow(/Missing 1 translation/);
});

test("a complete catalog can be built", async () => {
  await expect(buildCatalog("en")).resolves.toBeTruthy();
});

test("the page offers the languages that have a catalog, and no other", () => {
  const config = readFileSync("lingui.config.ts", "utf8");
  const locales = /locales: (\[.*\])/.exec(config)?.[1] ?? "[]";
  expect(Object.keys(LANGUAGES)).toEqual(JSON.parse(locales));
});
