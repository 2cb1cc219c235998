// Renders DOCX files with docx-preview, a program that knows nothing of the one that wrote them, and checks that a
// reader sees what each must show: its headings, the rows of its tables, its images and the numbers of its citations,
// on pages that nothing leaves. The exit code is 0 if all is so.
//
//   OFFING_FILES     a folder with NAME.docx, and NAME.json with `headings`, `rows`, `images`, `citations` and `is_rtl`
//   OFFING_SHOTS     a folder for pictures of each file; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { env } from "./browser.mjs";

const folder = env("OFFING_FILES");
const shots = env("OFFING_SHOTS", "");

const modules = new URL("../node_modules/", import.meta.url);
const scriptPath = (name) => fileURLToPath(new URL(name, modules));

async function openFile(page, name) {
  await page.setContent("<!doctype html><meta charset=utf-8><body>");
  await page.addScriptTag({ path: scriptPath("jszip/dist/jszip.min.js") });
  await page.addScriptTag({ path: scriptPath("docx-preview/dist/docx-preview.min.js") });
  await page.evaluate(
    async (bytes) => {
      const data = Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0));
      await globalThis.docx.renderAsync(data, document.body, undefined, { useBase64URL: true });
      await Promise.all([...document.images].map((image) => image.decode()));
    },
    readFileSync(`${folder}/${name}.docx`).toString("base64"),
  );
}

/** Return what a reader sees. Runs in the page. */
function readPages() {
  const isVisible = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 0 && height > 0 && element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  };
  const lines = [...document.querySelectorAll("section.docx p")].filter(isVisible);
  const sheets = [...document.querySelectorAll("section.docx")].map((one) => one.getBoundingClientRect());
  const outside = [...document.querySelectorAll("section.docx :is(p, table, img, td)")].filter((element) => {
    const box = element.getBoundingClientRect();
    return isVisible(element) && !sheets.some(({ left, right }) => box.left >= left - 1 && box.right <= right + 1);
  });
  const sizeOf = (line) => Number.parseFloat(getComputedStyle(line.querySelector("span") ?? line).fontSize);
  const body = lines.map(sizeOf).sort((one, other) => one - other)[Math.floor(lines.length / 2)];
  return {
    headings: lines
      .filter((line) => /title|heading/i.test(line.className) && sizeOf(line) > body)
      .map((line) => line.innerText.trim()),
    rows: [...document.querySelectorAll("table")].map((table) => [...table.rows].filter(isVisible).length),
    images: [...document.images].filter((image) => isVisible(image) && image.naturalWidth > 1).length,
    numbers: [...document.querySelectorAll("a[href^='#citation']")]
      .filter(isVisible)
      .map((link) => link.innerText.trim()),
    outside: outside.map((element) => element.outerHTML.slice(0, 120)),
    directions: [...new Set(lines.map((line) => getComputedStyle(line).direction))],
    text: document.body.innerText,
  };
}

async function check(page, name) {
  const expected = JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));
  await openFile(page, name);
  if (shots) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
  const seen = await page.evaluate(readPages);
  for (const heading of expected.headings) assert.ok(seen.headings.includes(heading), `${name}: heading ${heading}`);
  assert.deepEqual(seen.rows, expected.rows, `${name}: the rows of each table`);
  assert.equal(seen.images, expected.images, `${name}: images`);
  const numbers = new Set(seen.numbers.map((one) => Number(one.replace(/\D/g, ""))));
  for (const number of expected.citations) assert.ok(numbers.has(number), `${name}: the number ${number} is not seen`);
  assert.deepEqual(seen.outside, [], `${name}: nothing leaves its page`);
  assert.equal(seen.directions.includes("rtl"), expected.is_rtl, `${name}: ${seen.directions}`);
  console.log(`${name}: ${seen.headings.length} headings, ${seen.numbers.length} numbers, ${seen.rows} rows`);
}

const browser = await chromium.launch({
  executablePath: env("OFFING_CHROMIUM", "/usr/bin/chromium"),
  args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
});
try {
  for (const file of readdirSync(folder).filter((one) => one.endsWith(".docx"))) {
    const page = await browser.newPage({ viewport: { width: 1000, height: 1200 } });
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await check(page, file.replace(/\.docx$/, ""));
    assert.deepEqual(errors, []);
    await page.close();
  }
} catch (error) {
  console.error(error.message ?? error);
  process.exitCode = 1;
} finally {
  await browser.close();
}
