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
import { openChat, texts, waitForMessage, waitForText } from "./chat-page.mjs";

const { OFFING_GATE, OFFING_SHOTS = "" } = process.env;
const SAID = "This comes before the end";

const shot = async (page, name) => OFFING_SHOTS && page.screenshot({ path: `${OFFING_SHOTS}/${name}.png` });
const waitForAnswer = (page) => waitForMessage(page, `ai: ${SAID}`);

const { browser, page } = await openChat("conversation", { gate: OFFING_GATE });

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
