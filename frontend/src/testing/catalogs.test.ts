/** The texts of a build: complete catalogs, and the parts of them that each view loads. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LANGUAGES } from "@/shared/language/languages";
import { type ModuleGraph, splitMessages } from "../../split-messages.ts";
import { compileTexts, findMessageIds, replaceMacros, writeTextFiles } from "../../vite-messages.ts";

test("a catalog without a translation cannot be built", async () => {
  const config = join(import.meta.dirname, "untranslated", "lingui.config.ts");
  await expect(compileTexts(config)).rejects.toThrow(/Missing 1 translation/);
});

test("the page offers the languages that have a catalog, and no other", async () => {
  expect([...(await compileTexts()).keys()]).toEqual(Object.keys(LANGUAGES));
});

test("a text of the code that a catalog lacks fails the build", () => {
  const parts = new Map([["main", new Set(["a", "b"])]]);
  const texts = new Map([
    ["en", { a: "A", b: "B" }],
    ["zh-Hans", { a: "甲" }],
  ]);
  expect(() => writeTextFiles(parts, texts)).toThrow("The catalog zh-Hans lacks 1 texts of the code.");
});

test("every text of the catalogs is found in the code", async () => {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !/\.test\.|^(testing|stories)/.test(name))
    .map((name) => join("src", name));
  const found = new Set<string>();
  for (const file of files) {
    const code = readFileSync(file, "utf8");
    if (!code.includes("/macro")) continue;
    for (const id of findMessageIds((await replaceMacros(code, file, []))?.code ?? "")) found.add(id);
  }
  const catalog = (await compileTexts()).get("en") ?? {};
  expect([...found].sort()).toEqual(Object.keys(catalog).sort());
});

/** The page opens a run, which opens the report and its note; the page and the run open the settings. */
const GRAPH: ModuleGraph = {
  entry: "main",
  imports: new Map([
    ["main", ["shell"]],
    ["run", ["labels"]],
    ["report", ["labels", "quote"]],
    ["settings", ["labels"]],
  ]),
  lazyImports: new Map([
    ["shell", ["run", "settings"]],
    ["run", ["report", "note", "settings"]],
    ["note", ["run"]],
  ]),
  texts: new Map([
    ["shell", ["Sign out"]],
    ["run", ["Pause", "Stop"]],
    ["labels", ["Queued", "Done"]],
    ["quote", ["Quote"]],
    ["report", ["Sign out", "Report"]],
    ["note", ["Nothing yet"]],
    ["settings", ["Language"]],
  ]),
};

function split(minTexts: number) {
  return Object.fromEntries([...splitMessages(GRAPH, minTexts)].map(([view, texts]) => [view, [...texts].sort()]));
}

test("a view loads the texts of its code that no view that opens it has loaded", () => {
  expect(split(1)).toEqual({
    main: ["Sign out"],
    run: ["Done", "Pause", "Queued", "Stop"],
    report: ["Quote", "Report"],
    note: ["Nothing yet"],
    settings: ["Done", "Language", "Queued"],
  });
});

test("a view with few texts has them in the file of the view that opens it, and seldom in that of the entry", () => {
  expect(split(2)).toEqual({
    main: ["Sign out"],
    run: ["Done", "Nothing yet", "Pause", "Queued", "Stop"],
    report: ["Quote", "Report"],
    note: [],
    settings: ["Done", "Language", "Queued"],
  });
  expect(split(4).settings).toEqual(["Done", "Language", "Queued"]);
});
