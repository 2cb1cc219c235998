// A first visit in a real browser: a model of one's own server is set up in the page, tested, and answers a question
// about the demo documents. Needs a running stack without runs, and a server with OpenAI's API that is not accepted yet.
// The exit code is 0 if every check passes.
//
//   OFFING_LOGIN   a one-time link, as `offing login` prints it
//   OFFING_MODEL   the address of the model server, which has the model stand-in
//   OFFING_ACCEPT  JSON list: the command with which the operator accepts this address
//   OFFING_SHOTS   a folder for screenshots; none when empty
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { base, env, screenshots, signedIn } from "./browser.mjs";

const address = env("OFFING_MODEL");
const [program, ...words] = JSON.parse(env("OFFING_ACCEPT"));
const KEY = "c4n4ry-key-of-the-browser";
const LONG = 120_000;
/** The window of a small laptop. */
const LOW = { width: 1280, height: 640 };

async function connect(page) {
  await page.getByRole("heading", { name: "Two ways to begin" }).waitFor();
  await screenshots(page, "first-visit");
  await page.getByRole("button", { name: "Set up a model" }).click();
  await page.getByRole("button", { name: /^vLLM/ }).click();
  await page.getByLabel("Address").fill(address);
  await page.getByLabel(/^Key/).fill(KEY);
  await page.setViewportSize(LOW);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText(`offing engine accept ${address}`, { exact: true }).waitFor();
  const { y, height } = await page.getByRole("button", { name: "Continue" }).boundingBox();
  assert.ok(y + height <= LOW.height, "what is to be done, and the button that goes on, are in the window");
  await screenshots(page, "not-accepted");
  execFileSync(program, words);
  await page.getByRole("button", { name: "Continue" }).click();
}

async function testAndUse(page) {
  await page.getByRole("radio", { name: /stand-in/ }).check();
  await page.getByRole("button", { name: "Test the model" }).click();
  await page.getByText("The model answers", { exact: true }).waitFor({ timeout: LONG });
  await screenshots(page, "tested");
  await page.getByRole("button", { name: "Use for new questions" }).click();
  await page.getByRole("heading", { name: "hosted_vllm/stand-in answers your questions" }).waitFor();
  assert.ok(!(await page.content()).includes(KEY), "the key is not in the page");
}

async function ask(page) {
  await page.getByRole("button", { name: "Use the demo documents" }).click();
  await page.getByText("The documents are ready", { exact: false }).waitFor({ timeout: LONG });
  await screenshots(page, "ready-to-ask");
  const request = page.waitForRequest((sent) => sent.method() === "POST" && /\/runs$/.test(sent.url()));
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  const { engines, preset } = (await request).postDataJSON();
  assert.deepEqual([engines, preset], [{}, undefined], "the question names no model: the default one answers");
  await page.waitForURL(/\/runs\//);
  await page.locator(".run-tab-dot").waitFor({ timeout: LONG });
  await page.getByRole("tab", { name: "Report" }).click();
  await page.getByText("John Smeaton built it", { exact: false }).first().waitFor();
}

async function settings(page) {
  await page.goto(new URL("/settings/models", base).href);
  await page.getByText("answers new questions", { exact: true }).waitFor();
  await page.getByText(/^answered/).waitFor();
  await screenshots(page, "settings-models");
  await page.goto(new URL("/", base).href);
  await page.getByRole("textbox", { name: "Question" }).waitFor();
  await page.getByText("Who built").or(page.getByText("Why did the third tower")).first().waitFor();
  assert.equal(await page.getByRole("heading", { name: "Two ways to begin" }).count(), 0, "it is no first visit");
}

await signedIn(async (page) => {
  const startedAt = Date.now();
  await connect(page);
  await testAndUse(page);
  await ask(page);
  console.log(`A first report of a model after ${Math.round((Date.now() - startedAt) / 1000)} s.`);
  await settings(page);
}, "a model was set up in the page and answered a question");
