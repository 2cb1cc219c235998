// The first steps of a new user in a real browser: a folder is added, a question and a follow-up are asked, drafts
// survive a reload and an outage, panels close, Back goes through the tabs, and a used login link is explained. Needs a
// running stack. The exit code is 0 if every check passes.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_FOLDER    a folder of documents
//   OFFING_QUESTION  the question about them
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
import assert from "node:assert/strict";
import { basename } from "node:path";
import { base, env, screenshots, signedIn } from "./browser.mjs";

const folder = env("OFFING_FOLDER");
const question = env("OFFING_QUESTION", "Who built the third Eddystone tower?");
const LONG = 90_000;

const home = (page) => page.getByRole("heading", { name: "What do you want to find out?" });

/** Open the options, and check that they explain graphs and models. */
async function optionsExplain(page) {
  const button = page.getByRole("button", { name: "Options", exact: true });
  await button.click();
  await page.getByRole("radio", { name: /AgentFlow/ }).waitFor();
  await page.getByRole("radio", { name: /^extractive/ }).waitFor();
  await screenshots(page, "options");
  await button.click();
  await page.getByRole("radio", { name: /AgentFlow/ }).waitFor({ state: "detached" });
}

async function addAndAsk(page) {
  await page.getByLabel("Add a folder").setInputFiles(folder);
  await page.getByText(/Reads only the \d+ documents you attached/).waitFor({ timeout: LONG });
  await page.getByRole("button", { name: "Options", exact: true }).click();
  await page.getByRole("checkbox", { name: "Run Python code in a sandbox" }).check();
  await page.getByRole("textbox", { name: "Question" }).fill(question);
  await page.getByRole("radio", { name: "Quick" }).check({ force: true });
  await page.reload();
  await page.getByText(/Reads only the \d+ documents you attached/).waitFor();
  assert.equal(
    await page.getByRole("textbox", { name: "Question" }).inputValue(),
    question,
    "the draft survives a reload",
  );
  await page.getByText("code", { exact: true }).waitFor();
  await screenshots(page, "attached");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.waitForURL(/\/runs\//);
  await page.locator(".run-tab-dot").waitFor({ timeout: LONG });
}

async function goBackThroughTabs(page) {
  const selected = (name) => page.getByRole("tab", { name, selected: true }).waitFor();
  await page.getByRole("tab", { name: "Sources" }).click();
  await page.getByRole("tab", { name: "Report" }).click();
  await selected(/Report/);
  await page.goBack();
  await selected(/Sources/);
  await page.goForward();
  await selected(/Report/);
}

async function followUp(page) {
  const form = page.getByRole("form", { name: "Follow-up question" });
  await form.getByText(/^Uses \d+ documents and code$/).waitFor();
  await screenshots(page, "follow-up");
  await form.getByRole("textbox").fill("And who built the first?");
  await page.reload();
  assert.equal(await form.getByRole("textbox").inputValue(), "And who built the first?", "the draft survives a reload");
  const before = page.url();
  const request = page.waitForRequest((sent) => sent.method() === "POST" && /\/runs$/.test(sent.url()));
  await form.getByRole("button", { name: "Ask" }).click();
  const { scope } = (await request).postDataJSON();
  assert.ok(scope.code && scope.sources.length > 0, "the follow-up has the scope of its run");
  await page.waitForURL((url) => url.href !== before);
  await page.locator(".run-tab-dot").waitFor({ timeout: LONG });
}

/**
 * Check that a view opened for the first time while the server is unreachable shows an error and loads after the server
 * returns.
 */
async function serverOutage(page) {
  await page.getByRole("link", { name: "Offing, home" }).click();
  await page.getByRole("textbox", { name: "Question" }).fill("A question that is not lost");
  await page.context().setOffline(true);
  await page.getByRole("link", { name: "Training" }).click();
  await page.getByText("This view could not be loaded").waitFor({ timeout: LONG });
  await page.getByText("The server cannot be reached.").waitFor({ timeout: LONG });
  await page.getByRole("link", { name: "Offing, home" }).waitFor();
  await screenshots(page, "outage");
  await page.context().setOffline(false);
  await page.getByText("No training jobs and no policies yet").waitFor({ timeout: LONG });
  await page.getByText("The server cannot be reached.").waitFor({ state: "detached", timeout: LONG });
  await page.getByRole("link", { name: "Offing, home" }).click();
  assert.equal(await page.getByRole("textbox", { name: "Question" }).inputValue(), "A question that is not lost");
}

async function library(page) {
  await page.getByRole("link", { name: "Library" }).click();
  const choice = page.getByRole("combobox", { name: "Collection" });
  await choice.and(page.locator(":enabled")).waitFor();
  await choice.selectOption(`=${basename(folder)}`);
  await page
    .getByRole("list", { name: "Documents" })
    .getByText(/eddystone/i)
    .first()
    .waitFor();
  await screenshots(page, "library");
}

async function usedLink(page) {
  const context = await page.context().browser().newContext();
  const other = await context.newPage();
  await other.goto(new URL(env("OFFING_LOGIN"), base).href);
  await other.getByRole("heading", { name: "This login link has been used or has expired" }).waitFor();
  await other.getByText("offing login", { exact: true }).waitFor();
  await screenshots(other, "used-link");
  await context.close();
}

await signedIn(async (page) => {
  await home(page).waitFor();
  await optionsExplain(page);
  await addAndAsk(page);
  await goBackThroughTabs(page);
  await followUp(page);
  await library(page);
  await serverOutage(page);
  await usedLink(page);
}, "a folder was added, a question and a follow-up were asked, and no draft was lost");
