// A person asks to drop a section in a real browser, is led to the new version of the report, goes back and compares;
// sees a conclusion with what it follows from; and opens documents from the lists of sources. Needs a running stack with
// an ended run whose report has a section “Who built the Bell Rock lighthouse” and another one. The exit code is 0 if
// every check passes.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_RUN       id of the run
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import assert from "node:assert/strict";
import { base, env, screenshots, signedIn } from "./browser.mjs";

const run = env("OFFING_RUN");
const EDIT = "Drop the section Who built the Bell Rock lighthouse";
const report = (id) => new URL(`/runs/${id}?tab=report`, base).href;

async function askForEdit(page) {
  await page.goto(report(run));
  await page.locator(".report").waitFor();
  await page.getByLabel("What the follow-up does").selectOption("edit");
  await page.getByLabel("Follow-up question").last().fill(EDIT);
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/runs/") && !url.pathname.endsWith(run));
  await page.getByRole("tab", { name: /^Report/ }).click();
  await page.getByText("This edit is version 2 of the report that it edited.").waitFor();
  await screenshots(page, "follow-up-edit");
}

async function readNewVersion(page) {
  await page.getByRole("link", { name: "Read version 2" }).click();
  await page.waitForURL((url) => url.pathname.endsWith(run));
  await page.getByText(`A follow-up made version 2 from version 1: “${EDIT}”`).waitFor();
  await screenshots(page, "follow-up-version");
  await page.getByRole("button", { name: "What changed" }).click();
  await page.getByText("Section removed: Who built the Bell Rock lighthouse").waitFor();
  await page.getByText(EDIT).first().waitFor();
  await screenshots(page, "follow-up-changes");
  await page.getByRole("tab", { name: "Text" }).click();
  await page.getByRole("button", { name: "Back to version 1" }).click();
  await page.getByText("Version 1 of 2").waitFor();
  await page.getByRole("button", { name: "Show the latest version" }).click();
  await page.getByRole("link", { name: "Open the follow-up" }).click();
  await page.waitForURL((url) => !url.pathname.endsWith(run));
  await page.goBack();
  await page.waitForURL((url) => url.pathname.endsWith(run));
}

/** Store a version with a conclusion, as a person could have written it. Returns the sentence that it follows from. */
function conclude(page) {
  return page.evaluate(async (id) => {
    const session = await (await fetch("/api/v1/session")).json();
    const read = await (await fetch(`/api/v1/runs/${id}/report`)).json();
    const keep = ({ id: sentence, text, citations, passages, layout }) => ({
      id: sentence,
      text,
      citations: [...citations, ...passages],
      layout,
    });
    const premise = read.sections.flatMap(({ sentences }) => sentences).find(({ supported }) => supported);
    const sections = read.sections.map(({ heading, sentences }) => ({ heading, sentences: sentences.map(keep) }));
    sections.at(-1).sentences.push({ text: `Therefore: ${premise.text}`, citations: [], layout: "statement" });
    const answer = read.answer && keep(read.answer);
    const body = { base_version: read.version, title: read.title, answer, sections, limitations: read.limitations };
    const response = await fetch(`/api/v1/runs/${id}/report/versions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf-token": session.csrf_token },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
    return premise.text;
  }, run);
}

async function readConclusion(page) {
  const premise = await conclude(page);
  await page.goto(report(run));
  await page
    .locator(".report .sentence", { hasText: "Therefore:" })
    .locator(".sentence-mark", { hasText: "conclusion" })
    .waitFor();
  const unsupported = page.getByRole("region", { name: "Unsupported sentences" });
  assert.equal(await unsupported.getByText("Therefore:").count(), 0, "a conclusion is not listed as unsupported");
  await page.getByRole("tab", { name: /^Claims/ }).click();
  await page.getByRole("button", { name: /^Conclusion 1$/ }).click();
  await screenshots(page, "report-conclusion");
  await page.getByRole("table", { name: "Claims of the report" }).getByText("Follows from").waitFor();
  await page
    .getByRole("button", { name: `“${premise}”` })
    .first()
    .click();
  await page.locator(".sentence:focus").waitFor();
}

async function openDocuments(page) {
  await page.goto(new URL(`/runs/${run}?tab=sources`, base).href);
  const sources = page.getByRole("region", { name: "Sources" });
  await sources.locator(".cited-open").first().click();
  const reader = page.getByRole("dialog");
  await reader.locator("mark").first().waitFor();
  await page.waitForFunction(() => {
    const [mark, text] = [document.querySelector("dialog mark"), document.querySelector("dialog section")];
    const [inner, outer] = [mark?.getBoundingClientRect(), text?.getBoundingClientRect()];
    return inner && outer && inner.top >= outer.top && inner.top <= outer.bottom;
  });
  await screenshots(page, "document");
  await reader.getByRole("button", { name: "Close" }).click();
  await page.goto(new URL("/library", base).href);
  await page.locator(".source-open").first().click();
  await page.getByRole("dialog").getByRole("region", { name: "Text of the document" }).waitFor();
  await screenshots(page, "library-document");
}

await signedIn(async (page) => {
  await askForEdit(page);
  await readNewVersion(page);
  await readConclusion(page);
  await openDocuments(page);
}, "an edit is a version, a conclusion says what it follows from, and sources open their documents");
