// React's `useStream` in Chromium against a running Offing: the page is reloaded in mid-stream, the text is whole, and an
// interrupt is answered. The exit code is 0 if every check passes.
//
//   OFFING_URL       the address of the API
//   OFFING_KEY       a key
//   OFFING_GATE      a file that lets the graph's node end
//   OFFING_CHROMIUM  the browser, /usr/bin/chromium by default
//   OFFING_SHOTS     a folder for screenshots; none when empty
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const frontend = createRequire(new URL("../../../../frontend/package.json", import.meta.url));
const { build } = await import(pathToFileURL(frontend.resolve("vite")).href);
const { chromium } = frontend("playwright-core");

const { OFFING_URL, OFFING_KEY, OFFING_GATE, OFFING_CHROMIUM = "/usr/bin/chromium", OFFING_SHOTS = "" } = process.env;
const SAID = "This comes before the end";

/** The page as one script. */
async function bundle() {
  const entry = fileURLToPath(new URL("use-stream/page.jsx", import.meta.url));
  const built = await build({
    configFile: false,
    logLevel: "warn",
    define: { "process.env.NODE_ENV": '"production"' },
    build: { write: false, minify: false, rollupOptions: { input: entry, output: { format: "iife" } } },
  });
  return built.output.find((file) => file.type === "chunk").code;
}

const shot = async (page, name) => OFFING_SHOTS && page.screenshot({ path: `${OFFING_SHOTS}/${name}.png` });
const texts = (page) => page.locator("li").allTextContents();
const waitForText = (page, id, text) =>
  page.waitForFunction(([of, is]) => document.getElementById(of)?.textContent === is, [id, text]);
const waitForAnswer = (page) =>
  page.waitForFunction((said) => [...document.querySelectorAll("li")].some((li) => li.textContent === `ai: ${said}`), SAID);

const script = await bundle();
const browser = await chromium.launch({ executablePath: OFFING_CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage();
page.setDefaultTimeout(60_000);
await page.route("**/chat*", (route) =>
  route.fulfill({ contentType: "text/html", body: '<!doctype html><div id="root"></div><script src="/chat.js"></script>' }),
);
await page.route("**/chat.js", (route) => route.fulfill({ contentType: "text/javascript", body: script }));
await page.goto(`${OFFING_URL}/chat?${new URLSearchParams({ key: OFFING_KEY, gate: OFFING_GATE })}`);

await page.getByRole("button", { name: "Ask" }).click();
await waitForAnswer(page);
assert.equal(await page.locator("#state").textContent(), "loading");
await shot(page, "before-the-reload");

await page.reload();
await waitForAnswer(page);
assert.equal(await page.locator("#state").textContent(), "loading");
assert.deepEqual(await texts(page), ["human: salt", `ai: ${SAID}`]);
await shot(page, "after-the-reload");

writeFileSync(OFFING_GATE, "");
await waitForText(page, "interrupt", "Is that fine?");
await waitForText(page, "state", "idle");
assert.deepEqual(await texts(page), ["human: salt", `ai: ${SAID}`]);
await shot(page, "interrupted");

await page.getByRole("button", { name: "Approve" }).click();
await page.waitForFunction(() => document.querySelectorAll("li").length === 3);
await waitForText(page, "state", "idle");
assert.deepEqual(await texts(page), ["human: salt", `ai: ${SAID}`, "ai: You said yes"]);
assert.equal(await page.locator("#error").textContent(), "");
await shot(page, "answered");
await browser.close();
console.log("useStream: passed");
