// React's `useStream` in Chromium while the worker of its run is killed: what the lost attempt wrote goes away, and every
// message is there once and in order at each moment. The exit code is 0 if every check passes.
//
//   OFFING_FOLDER  where the graph counts its attempts; `seen` is written when the first one is shown, `open` when the
//                  second one is
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { openChat, texts, waitForMessage, waitForText } from "./chat-page.mjs";

const { OFFING_FOLDER } = process.env;
const QUESTION = "human: salt";
const FIRST = "ai: Attempt 1 tells this";
const SECOND = "ai: Attempt 2 tells this";

/** In the page: keep every list of messages that was shown. */
function watch() {
  window.shown = [];
  const note = () => {
    const now = [...document.querySelectorAll("li")].map((li) => li.textContent);
    if (JSON.stringify(now) !== JSON.stringify(window.shown.at(-1))) window.shown.push(now);
  };
  new MutationObserver(note).observe(document.body, { childList: true, subtree: true, characterData: true });
}

const { browser, page } = await openChat("report", { folder: OFFING_FOLDER });
await page.evaluate(watch);
await page.getByRole("button", { name: "Ask" }).click();
await waitForMessage(page, FIRST);
writeFileSync(`${OFFING_FOLDER}/seen`, "");

await waitForMessage(page, SECOND);
assert.deepEqual(await texts(page), [QUESTION, SECOND]);
assert.equal(await page.locator("#state").textContent(), "loading");
writeFileSync(`${OFFING_FOLDER}/open`, "");

await waitForText(page, "state", "idle");
assert.deepEqual(await texts(page), [QUESTION, SECOND]);
assert.equal(await page.locator("#error").textContent(), "");

const shown = await page.evaluate(() => window.shown);
for (const list of shown) {
  assert.ok(list.length <= 2, `more messages than there are: ${JSON.stringify(list)}`);
  assert.ok(list.length === 0 || list[0] === QUESTION, `out of order: ${JSON.stringify(list)}`);
  assert.ok(!list[1] || FIRST.startsWith(list[1]) || SECOND.startsWith(list[1]), `mixed: ${JSON.stringify(list)}`);
}
const begins = (text) => shown.findIndex((list) => list[1] === text);
assert.ok(begins(FIRST) < begins(SECOND));
assert.ok(shown.slice(begins(FIRST), begins(SECOND)).some((list) => list.length === 1), "nothing was withdrawn");
await browser.close();
console.log("useStream with a lost worker: passed");
