// What a new user does first, in a real browser: a folder is added, asked about and followed up; nothing typed is lost by
// a reload or while the server is away, panels close, Back leads through the tabs, and a used link says what to do. Needs
// a running stack; exit code 0 when all of it holds.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_FOLDER    a folder of documents
//   OFFING_QUESTION  what to ask about them
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
import assert from "node:assert/strict";
import { basename } from "node:path";
import { base, env, pictures, signedIn } from "./browser.mjs";

const folder = env("OFFING_FOLDER");
const question = env("OFFING_QUESTION", "Who built the third Eddystone tower?");
const LONG = 90_000;

const home = (page) => page.getByRole("heading", { name: "What should be found out?" });

/** The list of graphs comes late; what stands in the panel stays where it is. */
async function panelHoldsStill(page) {
  let arrive;
  const late = new Promise((resolve) => {
    arrive = resolve;
  });
  await page.route("**/api/v1/graphs", async (route) => {
    await late;
    await route.continue();
  });
  await page.reload();
  await home(page).waitFor();
  const button = page.getByRole("button", { name: "Limits and engine" });
  await button.click();
  const field = page.getByPlaceholder("this installation's default");
  await page.getByText("extractive").first().waitFor();
  const before = await field.boundingBox();
  const graph = page.getByRole("combobox", { name: "Graph" });
  assert.ok(await graph.isDisabled(), "the graph cannot be chosen before its list has come");
  await pictures(page, "limits-before-the-graphs");
  arrive();
  await graph.and(page.locator(":enabled")).waitFor();
  assert.deepEqual(await field.boundingBox(), before, "the fields of the panel stay where they are");
  await pictures(page, "limits");
  await page.keyboard.press("Escape");
  await field.waitFor({ state: "detached" });
  await button.click();
  await home(page).click();
  await field.waitFor({ state: "detached" });
  await page.unroute("**/api/v1/graphs");
}

async function addAndAsk(page) {
  await page.getByLabel("Add a folder").setInputFiles(folder);
  await page.getByText(/Reads only the \d+ documents you attached/).waitFor({ timeout: LONG });
  await page.getByRole("button", { name: "Code" }).click();
  await page.getByRole("textbox", { name: "Question" }).fill(question);
  await page.getByRole("radio", { name: "Quick" }).check({ force: true });
  await page.reload();
  await page.getByText(/Reads only the \d+ documents you attached/).waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Question" }).inputValue(), question, "a reload keeps it");
  assert.equal(await page.getByRole("button", { name: "Code" }).getAttribute("aria-pressed"), "true");
  await pictures(page, "attached");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.waitForURL(/\/runs\//);
  await page.locator(".run-tab-dot").waitFor({ timeout: LONG });
}

async function backThroughTabs(page) {
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
  await pictures(page, "follow-up");
  await form.getByRole("textbox").fill("And who built the first?");
  await page.reload();
  assert.equal(await form.getByRole("textbox").inputValue(), "And who built the first?", "a reload keeps it");
  const before = page.url();
  const asked = page.waitForRequest((request) => request.method() === "POST" && /\/runs$/.test(request.url()));
  await form.getByRole("button", { name: "Ask" }).click();
  const { scope } = (await asked).postDataJSON();
  assert.ok(scope.code && scope.sources.length > 0, "the follow-up reads and uses what its run did");
  await page.waitForURL((url) => url.href !== before);
  await page.locator(".run-tab-dot").waitFor({ timeout: LONG });
}

/** Without the server a view that was never opened says so in its own place, and comes by itself afterwards. */
async function serverAway(page) {
  await page.getByRole("link", { name: "Offing, home" }).click();
  await page.getByRole("textbox", { name: "Question" }).fill("A question that is not lost");
  await page.context().setOffline(true);
  await page.getByRole("link", { name: "Training" }).click();
  await page.getByText("This view could not be loaded").waitFor({ timeout: LONG });
  await page.getByText("The server cannot be reached.").waitFor({ timeout: LONG });
  await page.getByRole("link", { name: "Offing, home" }).waitFor();
  await pictures(page, "away");
  await page.context().setOffline(false);
  await page.getByText("No job has run and no policy is registered").waitFor({ timeout: LONG });
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
  await pictures(page, "library");
}

async function usedLink(page) {
  const context = await page.context().browser().newContext();
  const other = await context.newPage();
  await other.goto(new URL(env("OFFING_LOGIN"), base).href);
  await other.getByRole("heading", { name: "This login link was used before or has expired" }).waitFor();
  await other.getByText("offing login", { exact: true }).waitFor();
  await pictures(other, "used-link");
  await context.close();
}

await signedIn(async (page) => {
  await home(page).waitFor();
  await panelHoldsStill(page);
  await addAndAsk(page);
  await backThroughTabs(page);
  await followUp(page);
  await library(page);
  await serverAway(page);
  await usedLink(page);
}, "a folder was added, asked about and followed up, and nothing was lost on the way");
