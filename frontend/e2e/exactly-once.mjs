// Reads the timeline of a run in tabs that are open and closed at different times of the run. Prints what each tab shows
// as a line of JSON, and waits for a line on standard input before it goes on.
//
//   OFFING_LOGIN  a one-time link, as `offing login` prints it
//   OFFING_RUNS   the ids of two runs that wait for a person, as JSON: one is followed by an open tab, one by none
import { createInterface } from "node:readline";
import { base, env, signedIn } from "./browser.mjs";

const { open, closed } = JSON.parse(env("OFFING_RUNS", "{}"));
const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();

/** Tell what a tab shows and wait until the next part may begin. */
async function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
  await lines.next();
}

/** Return the numbers and titles of the steps in the order in which the timeline shows them, from first to last. */
async function readTimeline(page) {
  return await page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 50)));
    const isScroller = (one) =>
      one.scrollHeight > one.clientHeight && /auto|scroll/.test(getComputedStyle(one).overflowY);
    let scroller = document.querySelector(".timeline");
    while (scroller && !isScroller(scroller)) scroller = scroller.parentElement;
    scroller ??= document.scrollingElement;
    const shown = [];
    for (let top = 0; ; top += 200) {
      scroller.scrollTop = top;
      do await frame();
      while (document.querySelector(".step-skeleton"));
      const rows = [...document.querySelectorAll(".step")].map((row) => ({
        at: row.getBoundingClientRect().top,
        seq: Number(row.querySelector(".step-seq").textContent.replace(/\D/g, "")),
        title: row.querySelector(".step-title").textContent,
      }));
      const view = rows.toSorted((a, b) => a.at - b.at).map(({ seq, title }) => [seq, title]);
      const last = shown.at(-1)?.[0] ?? 0;
      const order = view.map(([seq]) => seq);
      if (order.some((seq, nth) => nth > 0 && seq <= order[nth - 1])) throw new Error(`out of order: ${order}`);
      shown.push(...view.filter(([seq]) => seq > last));
      if (top + scroller.clientHeight >= scroller.scrollHeight) return shown;
    }
  });
}

async function openTimeline(context, run) {
  const page = await context.newPage();
  await page.goto(new URL(`/runs/${run}?tab=timeline`, base).href);
  await page.locator(".step").first().waitFor();
  return page;
}

/** Wait until the page says that the run has ended, and its timeline has all steps. */
async function untilEnded(page, count) {
  await page.waitForFunction(
    (wanted) => Number(document.querySelector('[role="slider"]')?.getAttribute("aria-valuemax")) >= wanted,
    count,
    { timeout: 90_000 },
  );
}

await signedIn(async (page) => {
  // Tabs of one browser share its stream, so they belong to one context.
  const context = await page
    .context()
    .browser()
    .newContext({ storageState: await page.context().storageState() });
  context.setDefaultTimeout(90_000);
  const early = await openTimeline(context, closed);
  await early.close();
  const followed = await openTimeline(context, open);
  await page.close();
  // The runs now go on, while the servers are restarted. The answer is the number of steps that each run has recorded.
  process.stdout.write(`${JSON.stringify("ready")}\n`);
  const counts = JSON.parse((await lines.next()).value);
  await untilEnded(followed, counts.open);
  const late = await openTimeline(context, closed);
  await untilEnded(late, counts.closed);
  await tell({ open: await readTimeline(followed), closed: await readTimeline(late) });
}, '"done"');
input.close(); // otherwise the script waits for more
