// What is particular to each flow, in a real browser: each run's own tab shows its memory, report versions, context or
// subgoals, and the Tokens tab of a run that a policy answered shows ids, mask and log-probabilities. Needs a running
// stack with runs that have ended; exit code 0 when all of it holds.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_RUNS      run ids by graph, as JSON; one named `tokens` is a run whose turns have token ids
//   OFFING_SHOTS     a folder for screenshots of every tab, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import assert from "node:assert/strict";
import { base, env, pictures, signedIn } from "./browser.mjs";

/** Per graph: the name of its tab, and what stands in it. */
const TABS = {
  agentflow: ["Memory", ".context-record"],
  iterresearch: ["Report versions", ".version"],
  memact: ["Context", ".context-record"],
  supo: ["Context", ".context-record"],
  hiper: ["Subgoals", ".band"],
};

async function flowTab(page, graph, id) {
  const [name, particular] = TABS[graph];
  await page.goto(new URL(`/runs/${id}?tab=report`, base).href);
  await page.getByRole("tab", { name, exact: true }).click();
  const panel = page.getByRole("tabpanel");
  await panel.locator(particular).first().waitFor();
  const said = (await panel.locator(particular).first().textContent()) ?? "";
  assert.ok(said.trim().length > 10, `${graph} says something under ${name}: “${said}”`);
  if (graph === "iterresearch") await earlierVersion(page, panel);
  await pictures(page, graph);
}

/** The diff of the newest version, and an earlier one, which is another text. */
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
  await panel.locator(".turn-text .tok").first().waitFor();
  await pictures(page, "tokens");
  await panel.getByRole("button", { name: "Table" }).first().click();
  const rows = panel.locator(".tok-table").first().locator("tbody tr");
  const cells = await rows.first().locator("td").allTextContents();
  assert.match(cells[0], /^\d+$/, "an id");
  assert.match(cells[2], /^(yes|no)$/, "the mask");
  assert.match(cells[3], /^-?\d\.\d{4}$/, "a log-probability");
  await pictures(page, "tokens-table");
}

const runs = JSON.parse(env("OFFING_RUNS", "{}"));
await signedIn(
  async (page) => {
    for (const [graph, id] of Object.entries(runs)) {
      await (graph === "tokens" ? tokensTab(page, id) : flowTab(page, graph, id));
    }
  },
  `${Object.keys(runs).join(", ")}: each shows what is its own`,
);
