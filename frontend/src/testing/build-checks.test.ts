// @vitest-environment jsdom

/** The scripts of the build: cascade layers, the size of each route and compressed files. */

import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { measure } from "../../scripts/check-size.mjs";
import { compressFolder } from "../../scripts/compress.mjs";
import { findLayer } from "../../scripts/css-layers.mjs";
import { writePage } from "../../scripts/first-load.mjs";

test.each([
  ["src/app/reset.css", "reset"],
  ["src/app/tokens.css", "tokens"],
  ["src/app/base.css", "base"],
  ["src/shared/ui/button.module.css", "primitives"],
  ["src/features/home/composer.css", "features"],
  ["src/app/navigation.css", "features"],
  ["node_modules/other/style.css", null],
])("%s is in the layer %s", (path, layer) => {
  expect(findLayer(path)).toBe(layer);
});

const MANIFEST = {
  "index.html": { file: "index.js", css: ["index.css"], isEntry: true, imports: ["_common.js"] },
  "_common.js": { file: "common.js" },
  "src/features/library/library-page.tsx": {
    file: "library.js",
    css: ["library.css"],
    isDynamicEntry: true,
    imports: ["_list.js", "_common.js"],
  },
  "_list.js": { file: "list.js" },
};

test("a route is measured with what it imports and its style sheets, each once", () => {
  const { routes } = measure(MANIFEST, () => 10_000);
  const sizes = Object.fromEntries(routes.map(({ name, bytes }) => [name, bytes]));
  expect(sizes["/library"]).toBe(60_000);
});

test("each route is measured with its own texts and those of the entry, in the largest language", () => {
  const texts = {
    main: { en: "main.en.json", "zh-Hans": "main.zh-Hans.json" },
    "src/features/library/library-page": { en: "library.en.json", "zh-Hans": "library.zh-Hans.json" },
    "src/features/training/training-page": { en: "training.en.json", "zh-Hans": "training.zh-Hans.json" },
  };
  const bytes: Record<string, number> = {
    "main.en.json": 3_000,
    "main.zh-Hans.json": 2_000,
    "library.en.json": 1_000,
    "library.zh-Hans.json": 5_000,
    "training.en.json": 9_000,
  };
  const { routes } = measure(MANIFEST, (file) => bytes[file] ?? 10_000, texts);
  expect(routes.find(({ name }) => name === "/library")?.bytes).toBe(67_000);
});

test("a route, a later chunk and an unknown module that break the budget are reported", () => {
  const sizeOf = (file: string) => (file === "library.js" ? 86_100 : 10_000);
  const unknown = { ...MANIFEST, "src/app/other.tsx": { file: "other.js", isDynamicEntry: true } };
  const { problems } = measure(unknown, sizeOf);
  expect(problems).toContain("The first load of /library is 136.1 kB. The maximum is 120.0 kB.");
  expect(problems).toContain("The chunk src/features/library/library-page.tsx is 86.1 kB. The maximum is 80.0 kB.");
  expect(problems.some((text) => text.startsWith("src/app/other.tsx is loaded later."))).toBe(true);
});

test("texts of a build are stored compressed beside the files, and small files and fonts are not", async () => {
  const folder = mkdtempSync(join(tmpdir(), "build-"));
  const text = "export const answer = 42;\n".repeat(100);
  for (const name of ["page.js", "small.js", "font.woff2"]) writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, "small.js"), "export {};");
  await compressFolder(folder);
  expect(readdirSync(folder).sort()).toEqual(["font.woff2", "page.js", "page.js.br", "page.js.gz", "small.js"]);
  expect(brotliDecompressSync(readFileSync(join(folder, "page.js.br"))).toString()).toBe(text);
  expect(gunzipSync(readFileSync(join(folder, "page.js.gz"))).toString()).toBe(text);
});

const ENTRY_PAGE = `<head>
    <script src="/start.js"></script>
    <script type="module" crossorigin src="/assets/index.js"></script>
    <link rel="modulepreload" crossorigin href="/assets/app.js">
    <link rel="stylesheet" crossorigin href="/assets/app.css">
  </head>`;

test("a page contains the script that runs first, and names each file of its view once", () => {
  const page = writePage(ENTRY_PAGE, {
    start: "start('$&')",
    entry: ["assets/index.js", "assets/app.js"],
    scripts: ["assets/run.js", "assets/steps.js"],
    styles: ["assets/app.css", "assets/run.css"],
    bundle: "assets/run-first.css",
    texts: { en: { file: "/assets/run-first.en.json", parts: ["/assets/main.en.json"] } },
  });
  expect(page).toContain(">start('$&')</script>");
  const document = new DOMParser().parseFromString(page, "text/html");
  const listHrefs = (selector: string) =>
    [...document.querySelectorAll(selector)].map((link) => link.getAttribute("href"));
  expect(listHrefs("link[rel=modulepreload]")).toEqual(["/assets/app.js"]);
  expect(listHrefs("link[rel=stylesheet]:not([disabled])")).toEqual(["/assets/run-first.css"]);
  expect(listHrefs("link[rel=stylesheet][disabled]")).toEqual(["/assets/app.css", "/assets/run.css"]);
  const { scripts, texts } = document.querySelector("script")?.dataset ?? {};
  expect(JSON.parse(scripts ?? "")).toEqual(["/assets/run.js", "/assets/steps.js"]);
  expect(JSON.parse(texts ?? "")).toEqual({
    en: { file: "/assets/run-first.en.json", parts: ["/assets/main.en.json"] },
  });
});
