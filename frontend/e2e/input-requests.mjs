// An input request in a real browser: the list of runs shows it, the plan is edited with the keyboard alone, and the run
// continues. Needs a running stack with documents in its library. The exit code is 0 if every check passes.
//
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_QUESTION  the question
//   OFFING_SHOTS     a folder for screenshots; none when empty
import assert from "node:assert/strict";
import { base, env, screenshots, signedIn } from "./browser.mjs";

const question = env("OFFING_QUESTION", "How does undici reuse connections?");
const EDITED = "Look at what the documents say of the tower";

/** Submit a run whose graph asks for a plan review first. Returns the id of the run. */
function submitRun(page) {
  return page.evaluate(async (text) => {
    const { csrf_token } = await (await fetch("/api/v1/session")).json();
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf_token };
    const body = JSON.stringify({ question: text, graph: "research_team_reviewed", budget: { max_turns: 4 } });
    return (await (await fetch("/api/v1/runs", { method: "POST", headers, body })).json()).id;
  }, question);
}

await signedIn(async (page) => {
  await page.getByRole("heading", { name: "What do you want to find out?" }).waitFor();
  const run = await submitRun(page);
  await page.goto(new URL("/", base).href);
  await page.getByText("Waiting for you").first().waitFor({ timeout: 60_000 });
  await page.goto(new URL(`/runs/${run}`, base).href);
  const requests = page.getByRole("region", { name: "Input requests" });
  const plan = requests.getByRole("textbox", { name: "Plan, one step per line" });
  await plan.waitFor();
  await screenshots(page, "input-request");
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  assert.ok(await plan.evaluate((field) => field === document.activeElement), "g i moves the focus to the plan");
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type(EDITED);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await requests.waitFor({ state: "detached" });
  await page.getByText("edited").first().waitFor({ timeout: 60_000 });
}, "the plan was edited with the keyboard, and the run continued with it");
