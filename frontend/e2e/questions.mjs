// A run that asks, in a real browser: the list says so, the plan is edited by keyboard alone, and the run goes on.
// Needs a running stack with documents in its library; exit code 0 when all of it holds.
//
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_QUESTION  what to ask
//   OFFING_SHOTS     a folder for pictures; none when empty
import assert from "node:assert/strict";
import { base, env, pictures, signedIn } from "./browser.mjs";

const question = env("OFFING_QUESTION", "How does undici reuse connections?");
const EDITED = "Look at what the documents say of the tower";

/** Submits a run whose flow shows its plan first. Its id. */
function submitted(page) {
  return page.evaluate(async (asked) => {
    const { csrf_token } = await (await fetch("/api/v1/session")).json();
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf_token };
    const body = JSON.stringify({ question: asked, graph: "research_team_reviewed", budget: { turns: 4 } });
    return (await (await fetch("/api/v1/runs", { method: "POST", headers, body })).json()).id;
  }, question);
}

await signedIn(async (page) => {
  await page.getByRole("heading", { name: "What should be found out?" }).waitFor();
  const run = await submitted(page);
  await page.goto(new URL("/", base).href);
  await page.getByText("Waits for you").first().waitFor({ timeout: 60_000 });
  await page.goto(new URL(`/runs/${run}`, base).href);
  const asked = page.getByRole("region", { name: "What the run asks" });
  const plan = asked.getByRole("textbox", { name: "The plan, one step a line" });
  await plan.waitFor();
  await pictures(page, "question");
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  assert.ok(await plan.evaluate((field) => field === document.activeElement), "g q leads to the plan");
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type(EDITED);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await asked.waitFor({ state: "detached" });
  await page.getByText("edited").first().waitFor({ timeout: 60_000 });
}, "the plan was edited by keyboard, and the run took it up");
