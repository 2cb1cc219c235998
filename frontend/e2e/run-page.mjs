// The main use case in a real browser: sign in, ask about documents in the library, wait for the report, open a citation,
// and check its quote in the stored text. Needs a running stack. The exit code is 0 if every check passes.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_QUESTION  the question
//   OFFING_SHOT      where to write a screenshot (PNG); none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
//   OFFING_WAIT      seconds to wait for the report; 120 by default
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const env = (name, otherwise) => process.env[name] || otherwise;
const base = env("OFFING_URL", "http://127.0.0.1:8400");
const login = env("OFFING_LOGIN");
const question = env("OFFING_QUESTION", "How does undici reuse connections?");
const wait = Number(env("OFFING_WAIT", "120")) * 1000;
const shot = env("OFFING_SHOT", "");

/** Collect every error that the browser reports, with its location. */
function collectErrors(page) {
  const errors = [];
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => errors.push(`uncaught: ${error.message}`));
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText ?? "";
    if (reason !== "net::ERR_ABORTED") errors.push(`request: ${request.url()} ${reason}`);
  });
  return errors;
}

async function ask(page) {
  await page.getByRole("textbox", { name: "Question" }).fill(question);
  await page.getByRole("radio", { name: "Quick" }).check({ force: true });
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.waitForURL(/\/runs\//);
  await page.getByRole("heading", { level: 1, name: question }).waitFor();
}

/** Check that a reload during the run leaves every step exactly once, numbered without gaps. */
async function stepsAreWhole(page) {
  await page.getByRole("tab", { name: /Timeline/ }).click();
  await page.reload();
  await page.getByRole("heading", { level: 1, name: question }).waitFor();
  await page.getByRole("tab", { name: /Timeline/ }).click();
  await page.locator(".step-seq").first().waitFor();
  const seqs = (await page.locator(".step-seq").allTextContents()).map(Number);
  const first = seqs[0] ?? 0;
  assert.deepEqual(
    seqs,
    seqs.map((_, at) => first + at),
    "the timeline's rows are consecutive steps",
  );
}

async function citationOpens(page) {
  const marker = page
    .getByRole("tabpanel")
    .getByRole("button", { name: /^Citation \d+/ })
    .first();
  await marker.waitFor({ timeout: wait });
  await marker.scrollIntoViewIfNeeded();
  await marker.hover();
  const card = page.getByRole("tooltip");
  await card.locator(".quote-context").first().waitFor();
  const quote = ((await card.locator("mark").textContent()) ?? "").trim();
  const around = (await card.locator(".quote-context").allTextContents()).join("").trim();
  assert.ok(quote.length > 10, "the card shows the quote");
  assert.ok(around.length > 10, "the card shows the text around the quote");
  assert.match((await card.textContent()) ?? "", /✓ quote verified/);
  await marker.click();
  const kept = page.getByRole("region", { name: "Evidence" }).locator(".quote-card mark").first();
  await kept.waitFor();
  return quote;
}

async function main() {
  assert.ok(login, "OFFING_LOGIN is not set: set it to the link of `offing login`");
  const browser = await chromium.launch({
    executablePath: env("OFFING_CHROMIUM", "/usr/bin/chromium"),
    args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 960 } });
    page.setDefaultTimeout(90_000);
    const errors = collectErrors(page);
    await page.goto(new URL(login, base).href);
    await page.getByRole("heading", { name: "What do you want to find out?" }).waitFor();
    await ask(page);
    await page.locator(".run-tab-dot").waitFor({ timeout: wait });
    await stepsAreWhole(page);
    await page.getByRole("tab", { name: /Report/ }).click();
    const quote = await citationOpens(page);
    if (shot) await page.screenshot({ path: shot });
    assert.deepEqual(errors, [], "the browser reports no error");
    console.log(`report read, citation opened: “${quote.slice(0, 80)}”`);
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error.message ?? error);
  process.exitCode = 1;
});
