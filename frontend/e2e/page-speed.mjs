// Measures the pages of an installation with stored runs: how fast they open, scroll, and catch up after an outage of
// the connection. `python -m tests.bench web` starts it with a stack and writes the runs.
//
// Prints lines of JSON: {"append": run} when the steps that a page missed shall be appended to a run, whereupon it waits
// for a line on standard input, and at the end {"samples": {name: [milliseconds or a count of each round]}}.
//
//   OFFING_LOGIN, OFFING_URL, OFFING_CHROMIUM   as for the other scripts
//   OFFING_LONG_RUN, OFFING_LONG_STEPS          a run with many steps
//   OFFING_RUNNING_RUNS, OFFING_RUNNING_STEPS   ids of running runs as JSON, and the steps that each of them has
//   OFFING_MISSED_STEPS                         the steps that are appended
//   OFFING_ROUNDS                               how often each page is measured
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { base, env, openBrowser } from "./browser.mjs";
import { cuttableProxy } from "./cuttable-proxy.mjs";
import { clickFirstStep, noteStreamedSteps, scrollFrames, waitForFirst } from "./page-clock.mjs";

const LONG_RUN = env("OFFING_LONG_RUN");
const LONG_STEPS = Number(env("OFFING_LONG_STEPS"));
const RUNNING_RUNS = JSON.parse(env("OFFING_RUNNING_RUNS", "[]"));
const RUNNING_STEPS = Number(env("OFFING_RUNNING_STEPS"));
const MISSED_STEPS = Number(env("OFFING_MISSED_STEPS"));
const ROUNDS = Number(env("OFFING_ROUNDS", "5"));
const WIDE = { width: 1440, height: 960 };
/** Milliseconds after which a page counts as broken. Only a fault takes longer. */
const PATIENCE = 60_000;
const FRAMES = 120;
const PIXELS_PER_FRAME = 240;

const samples = {};
const note = (name, value) => {
  samples[name] = [...(samples[name] ?? []), value];
};

/** Run `work` on a page of a browser context of its own, whose cache is empty. */
async function withPage(browser, session, work) {
  const context = await browser.newContext({ viewport: WIDE, storageState: session });
  context.setDefaultTimeout(PATIENCE);
  const errors = [];
  try {
    const page = await context.newPage();
    page.on("pageerror", (error) => errors.push(error.message));
    await work(page);
    assert.deepEqual(errors, [], "the page throws no error");
  } finally {
    await context.close();
  }
}

/** Milliseconds from the start of the navigation until the init script of the page has seen what it waits for. */
async function timeOpening(page, address) {
  await page.goto(new URL(address, base).href, { waitUntil: "commit" });
  await page.waitForFunction(() => window.firstSeenMs !== undefined);
  return await page.evaluate(() => window.firstSeenMs);
}

/** Open an address with an empty cache and again with a filled one. */
async function measureOpening(browser, session, name, address, script, argument) {
  await withPage(browser, session, async (page) => {
    await page.addInitScript(script, argument);
    note(`${name}_cold`, await timeOpening(page, address));
    await page.waitForLoadState("load");
    note(`${name}_warm`, await timeOpening(page, address));
  });
}

/** Scroll the timeline of the long run, and a plain list with as many rows on a page without anything else. */
async function measureScrolling(browser, session) {
  await withPage(browser, session, async (page) => {
    await page.goto(new URL(`/runs/${LONG_RUN}?tab=timeline`, base).href);
    await page.locator(".step").first().waitFor();
    const timeline = await scrollFrames(page, ".timeline", FRAMES, PIXELS_PER_FRAME);
    note("frame_timeline", timeline.frameMs);
    note("work_timeline", timeline.workMs);
    note("nodes", timeline.nodes);
  });
  await withPage(browser, undefined, async (page) => {
    const rows = Array.from({ length: LONG_STEPS }, (_, at) => `<li>Step ${at + 1}: dredging records</li>`).join("");
    const style = "<style>body{margin:0}ol{height:900px;overflow:auto}li{height:50px}</style>";
    await page.setContent(`<!doctype html><title>List</title>${style}<ol>${rows}</ol>`);
    const list = await scrollFrames(page, "ol", FRAMES, PIXELS_PER_FRAME);
    note("frame_list", list.frameMs);
    note("work_list", list.workMs);
  });
}

/** Cut the connection of a page that follows a run, append steps, and measure from the new connection to the last step. */
async function measureCatchingUp(browser, session, run, lines) {
  const proxy = await cuttableProxy(new URL(base));
  const last = RUNNING_STEPS + MISSED_STEPS;
  try {
    await withPage(browser, session, async (page) => {
      await page.addInitScript(noteStreamedSteps, last);
      await page.goto(new URL(`/runs/${run}?tab=timeline`, proxy.address).href);
      await page.locator(`.step-seq:text-is("${RUNNING_STEPS}")`).waitFor();
      await page.waitForFunction(() => window.stream.opened === 1);
      proxy.cut();
      console.log(JSON.stringify({ append: run }));
      await lines.next();
      proxy.restore();
      await page
        .waitForFunction(() => window.stream.caughtUpAt !== undefined)
        .catch(async (error) => {
          const state = await page.evaluate(() => ({
            opened: window.stream.opened,
            last: window.stream.seqs.at(-1),
            count: window.stream.seqs.length,
            rows: [...document.querySelectorAll(".step-seq, .step-skeleton")].map((row) => row.textContent),
            unseen: document.querySelector(".timeline-new")?.textContent,
          }));
          throw new Error(`the page did not catch up: ${JSON.stringify(state)}`, { cause: error });
        });
      const { opened, seqs, caughtUpAt } = await page.evaluate(() => window.stream);
      assert.ok(opened > 1, "the page connected again");
      const missed = Array.from({ length: MISSED_STEPS }, (_, at) => RUNNING_STEPS + 1 + at);
      assert.deepEqual(seqs, missed, "each missed step arrives once and in order");
      await rowsAreConsecutive(page, last);
      note("catch_up", caughtUpAt - proxy.reconnectedAt());
    });
  } finally {
    await proxy.close();
  }
}

/** Check that the timeline ends with the last step, and shows each step once. */
async function rowsAreConsecutive(page, last) {
  const rows = await page.locator(".step").evaluateAll((all) =>
    all
      .map((row) => [row.getBoundingClientRect().top, Number(row.querySelector(".step-seq").textContent)])
      .sort(([a], [b]) => a - b)
      .map(([, seq]) => seq),
  );
  assert.ok(rows.length > 5, "the timeline shows steps");
  assert.deepEqual(
    rows,
    rows.map((_, at) => last - rows.length + 1 + at),
    "the timeline shows the last steps, each once",
  );
}

async function signIn(browser) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(new URL(env("OFFING_LOGIN"), base).href);
  await page.locator("h1").first().waitFor({ timeout: PATIENCE });
  const session = await context.storageState();
  await context.close();
  return session;
}

const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
const browser = await openBrowser();
try {
  const session = await signIn(browser);
  for (let round = 0; round < ROUNDS; round += 1) {
    const timeline = `/runs/${LONG_RUN}?tab=timeline`;
    await measureOpening(browser, session, "open", timeline, clickFirstStep);
    await measureOpening(browser, session, "home", "/", waitForFirst, ".run-row");
    await measureOpening(browser, session, "runs", "/runs", waitForFirst, "[data-run]");
    await measureScrolling(browser, session);
    await measureCatchingUp(browser, session, RUNNING_RUNS[round], lines);
  }
  console.log(JSON.stringify({ samples }));
} finally {
  await browser.close();
  input.close(); // otherwise the script waits for more
}
