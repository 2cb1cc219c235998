// The state of each graph in a real browser: the State tab shows memory records, report versions, context or subgoals,
// and the Tokens tab of a run that a policy answered shows token ids, loss mask and log-probabilities. Needs a running
// stack with runs that have ended. The exit code is 0 if every check passes.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_RUNS      run ids by graph, as JSON; one named `tokens` is a run whose role calls have token ids
//   OFFING_SHOTS     a folder for screenshots of every tab, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import assert from "node:assert/strict";
import { base, env, screenshots, signedIn } from "./browser.mjs";

/** For each graph, the label of its state view and a selector of the view's content. */
const VIEWS = {
  agentflow: ["Memory records", ".context-record"],
  iterresearch: ["Report versions", ".version"],
  memact: ["Context", ".context-record"],
  supo: ["Context", ".context-record"],
  hiper: ["Subgoals", ".band"],
};

async function stateTab(page, graph, id) {
  const [name, content] = VIEWS[graph];
  await page.goto(new URL(`/runs/${id}?tab=report`, base).href);
  await page.getByRole("tab", { name: "State", exact: true }).click();
  const panel = page.getByRole("tabpanel");
  await panel.getByRole("heading", { name, exact: true }).waitFor();
  await panel.locator(content).first().waitFor();
  const text = (await panel.locator(content).first().textContent()) ?? "";
  assert.ok(text.trim().length > 10, `${graph} shows something under ${name}: “${text}”`);
  if (graph === "iterresearch") await earlierVersion(page, panel);
  await screenshots(page, graph);
}

/** Check the diff of the newest version and that an earlier version has a different text. */
async function earlierVersion(page, panel) {
  await panel.locator("ins").first().waitFor();
  const newest = await panel.locator(".version").textContent();
  await panel.getByRole("slider").focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((was) => document.querySelector(".version")?.textContent !== was, newest);
}

async function tokensTab(page, id) {
  await page.goto(new URL(`/runs/${id}?tab=tokens`, base).href);
  const panel = page.getByRole("tabpanel");
  await panel.getByRole("heading", { name: /Segment 0/ }).waitFor();
  await panel.locator(".role-call-text .tok").first().waitFor();
  await screenshots(page, "tokens");
  await panel.getByRole("button", { name: "Table" }).first().click();
  const rows = panel.locator(".tok-table").first().locator("tbody tr");
  const cells = await rows.first().locator("td").allTextContents();
  assert.match(cells[0], /^\d+$/, "an id");
  assert.match(cells[2], /^(yes|no)$/, "the mask");
  assert.match(cells[3], /^-?\d\.\d{4}$/, "a log-probability");
  await screenshots(page, "tokens-table");
}

const runs = JSON.parse(env("OFFING_RUNS", "{}"));
await signedIn(
  async (page) => {
    for (const [graph, id] of Object.entries(runs)) {
      await (graph === "tokens" ? tokensTab(page, id) : stateTab(page, graph, id));
    }
  },
  `${Object.keys(runs).join(", ")}: each shows its state`,
);
