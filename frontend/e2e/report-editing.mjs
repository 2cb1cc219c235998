// A person edits a report in a real browser: changes a sentence, cites another passage, saves, compares both versions,
// exports the new one as a file, and reads a long report with little around it. Needs a running stack with an ended run
// whose report cites something. The exit code is 0 if every check passes.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_RUN       id of the run
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { base, env, screenshots, signedIn } from "./browser.mjs";

const run = env("OFFING_RUN");
const ADDED = "A person has added this sentence.";
const NOTE = "Added what was missing";

async function editAndSave(page) {
  await page.goto(new URL(`/runs/${run}?tab=report`, base).href);
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  const editor = page.getByRole("region", { name: "Edit the report" });
  await editor.getByRole("button", { name: "Add a sentence", exact: true }).click();
  const field = editor.getByRole("textbox", { name: /^Sentence/ }).last();
  await field.fill(ADDED);
  await page.reload();
  await editor.getByText(ADDED).waitFor();
  await editor
    .getByRole("button", { name: /Cite a passage in: Sentence/ })
    .last()
    .click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("button[aria-expanded]").first().click();
  await dialog.locator("button[aria-pressed]").first().click();
  await dialog.getByRole("button", { name: "Cite these words" }).click();
  await editor.getByRole("button", { name: /^Citation new of/ }).waitFor();
  await editor.getByRole("textbox", { name: "Note about this version" }).fill(NOTE);
  await screenshots(page, "report-edit");
  const around = await page
    .locator(".view")
    .first()
    .evaluate((view) => view.scrollHeight - view.clientHeight);
  assert.ok(around <= 0, `only the run scrolls, but the page around it scrolls by ${around} px`);
  await editor.getByRole("button", { name: "Save as a new version" }).click();
  await page.getByText(/Saved as version \d+/).waitFor();
  const sentence = page.locator(".report .sentence", { hasText: ADDED });
  await sentence.getByText("edited", { exact: true }).waitFor();
  assert.equal(await sentence.locator(".cite").count(), 1, "the new sentence has its citation");
}

async function compareVersions(page) {
  await page.getByRole("tab", { name: /^Versions/ }).click();
  await page.getByText(NOTE).waitFor();
  await page.locator("ins", { hasText: ADDED }).waitFor();
  await screenshots(page, "report-versions");
  await page.getByRole("tab", { name: /^Claims/ }).click();
  await page.getByRole("table", { name: "Claims of the report" }).waitFor();
  await screenshots(page, "report-claims");
  await page.getByRole("table", { name: "Claims of the report" }).getByRole("button", { name: ADDED }).click();
  await page.locator(".sentence:focus", { hasText: ADDED }).waitFor();
}

async function exportVersion(page) {
  const bar = page.locator("[role=tablist][aria-label='Parts of the report']").locator("..");
  await bar.getByRole("button", { name: "Export" }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: /Markdown/ }).click(),
  ]);
  const text = readFileSync(await download.path(), "utf8");
  assert.ok(text.includes(ADDED), "the file has the new sentence");
  assert.ok(text.includes("edited by a person"), "the file marks it");
}

/** Store a long version, as a person could have written it. */
async function lengthen(page) {
  await page.evaluate(async (id) => {
    const session = await (await fetch("/api/v1/session")).json();
    const report = await (await fetch(`/api/v1/runs/${id}/report`)).json();
    const number = report.citations[0].number;
    const sentence = (text, layout, citations = []) => ({ text, layout, citations });
    const words =
      "Rivers carry dissolved salt from rocks on land into the sea, year after year, and the sun takes only water.";
    const sections = Array.from({ length: 9 }, (_, at) => ({
      heading: `Part ${at + 1}: how salt reaches the sea`,
      sentences: [
        sentence(words, "paragraph", [number]),
        ...Array.from({ length: 5 }, () => sentence(words, "continued", [number])),
        sentence("River | Tonnes | Year", "header"),
        sentence("Severn | 400 | 2002", "row", [number]),
      ],
    }));
    const response = await fetch(`/api/v1/runs/${id}/report/versions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf-token": session.csrf_token },
      body: JSON.stringify({ base_version: report.version, title: report.title, answer: null, sections }),
    });
    if (!response.ok) throw new Error(await response.text());
  }, run);
}

/** Check that, while a person reads, less than a fifth of the window is not text, and that lines have 60 to 72 letters. */
async function readLong(page, size) {
  await page.setViewportSize(size);
  await page.goto(new URL(`/runs/${run}?tab=report`, base).href);
  await page.locator("#report-section-5").scrollIntoViewIfNeeded();
  await page.locator("#report-section-5 p").first().hover();
  await page.mouse.wheel(0, 400);
  await page.waitForTimeout(400);
  const measured = await page.evaluate(() => {
    const visible = (selector) => {
      const box = document.querySelector(selector)?.getBoundingClientRect();
      return box && box.width > innerWidth / 3
        ? Math.max(0, Math.min(box.bottom, innerHeight) - Math.max(box.top, 0))
        : 0;
    };
    const bars = [".run-head", ".minimap-panel", ".run-tabs", ".message-bar", "header"].map((one) => [
      one,
      visible(one),
    ]);
    const range = document.createRange();
    const text = document.querySelector("#report-section-5 p .sentence span").firstChild;
    const lines = [];
    for (let at = 0, top = null; at < text.length; at += 1) {
      range.setStart(text, at);
      range.setEnd(text, at + 1);
      const y = range.getBoundingClientRect().top;
      if (top === null || Math.abs(y - top) > 4) lines.push(0);
      top = y;
      lines[lines.length - 1] += 1;
    }
    return { bars, share: bars.reduce((sum, [, height]) => sum + height, 0) / innerHeight, lines };
  });
  console.log(`${size.width} × ${size.height}`, JSON.stringify(measured));
  assert.ok(measured.share < 0.2, `${Math.round(measured.share * 100)} % of the window is not the report`);
  if (size.width > 900) {
    const longest = Math.max(...measured.lines);
    assert.ok(longest >= 60 && longest <= 72, `a line has ${longest} letters`);
  }
}

await signedIn(async (page) => {
  await editAndSave(page);
  await compareVersions(page);
  await exportVersion(page);
  await lengthen(page);
  await readLong(page, { width: 1440, height: 900 });
  await screenshots(page, "report-reading");
  await readLong(page, { width: 390, height: 844 });
}, "a report is edited, compared, exported and read");
