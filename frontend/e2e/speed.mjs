// Measures the web UI over stored runs and prints JSON, times in seconds. `tests/bench/web_ui.py` fills the stack.
//
//   OFFING_LOGIN  a one-time link, as `offing login` prints it
//   OFFING_RUNS   as JSON: `long`, the id of an ended run with many steps, its number of steps `steps`, and `live`, the
//                 id of a run that has not ended
//
// It writes "lost" when the page has lost its connection, and continues with a line on standard input, which is the
// number of steps that `live` then has.
import { createInterface } from "node:readline";
import { base, env, signedIn } from "./browser.mjs";

const { long, live } = JSON.parse(env("OFFING_RUNS", "{}"));
const LOADS = 5;
const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Seconds from the navigation to the first frame in which an element is there. The page reports the time itself. */
async function timeTo(context, path, selector) {
  const page = await context.newPage();
  await page.goto(new URL(path, base).href, { waitUntil: "commit" });
  const seconds = await page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const look = () =>
          document.querySelector(wanted)
            ? requestAnimationFrame(() => resolve(performance.now() / 1000))
            : requestAnimationFrame(look);
        look();
      }),
    selector,
  );
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  await page.close();
  return { seconds, nodes };
}

async function medianTo(context, path, selector) {
  const loads = [];
  for (let nth = 0; nth < LOADS; nth += 1) loads.push(await timeTo(context, path, selector));
  return { seconds: median(loads.map((one) => one.seconds)), nodes: Math.max(...loads.map((one) => one.nodes)) };
}

/** Scroll a list for some seconds, frame by frame. Returns the 95th percentile of the time between frames. */
async function scrollFrames(page, selector) {
  return await page.evaluate(async (wanted) => {
    const isScroller = (one) =>
      one.scrollHeight > one.clientHeight + 100 && /auto|scroll/.test(getComputedStyle(one).overflowY);
    let scroller = document.querySelector(wanted);
    while (scroller && !isScroller(scroller)) scroller = scroller.parentElement;
    scroller ??= document.scrollingElement;
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    scroller.scrollTop = 0;
    const times = [];
    let before = await frame();
    for (let nth = 0; nth < 300; nth += 1) {
      scroller.scrollTop += 60;
      const now = await frame();
      times.push((now - before) / 1000);
      before = now;
    }
    return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)];
  }, selector);
}

/** A list without any code that has the text of as many rows as the timeline has steps. */
async function openPlainList(context, count, row) {
  const page = await context.newPage();
  await page.setContent(`<div id="list" style="height: 800px; overflow-y: auto; font: 14px sans-serif"></div>`);
  await page.evaluate(
    ([rows, text]) => {
      const list = document.getElementById("list");
      for (let nth = 0; nth < rows; nth += 1) {
        const line = document.createElement("div");
        line.style.padding = "8px";
        line.textContent = `${nth + 1} ${text}`;
        list.append(line);
      }
    },
    [count, row],
  );
  return page;
}

async function measureScrolling(context, count) {
  const page = await context.newPage();
  await page.goto(new URL(`/runs/${long}?tab=timeline`, base).href);
  await page.locator(".step").first().waitFor();
  const row = await page.locator(".step").first().innerText();
  const ours = await scrollFrames(page, ".timeline");
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  await page.close();
  const plain = await openPlainList(context, count, row);
  const bare = await scrollFrames(plain, "#list");
  await plain.close();
  return { ours, bare, nodes };
}

/** Seconds from the new connection to the frame in which all steps are there that were appended without one. */
async function measureCatchingUp(context) {
  const page = await context.newPage();
  await page.addInitScript(() => {
    const Source = globalThis.EventSource;
    globalThis.EventSource = class extends Source {
      constructor(address) {
        super(address);
        globalThis.lastSource = this;
        this.addEventListener("open", () => {
          globalThis.openedAt = performance.now();
        });
      }
    };
  });
  await page.goto(new URL(`/runs/${live}?tab=timeline`, base).href);
  await page.locator(".step").first().waitFor();
  await page.waitForFunction(() => globalThis.openedAt);
  await page.evaluate(() => globalThis.lastSource.close());
  process.stdout.write('"lost"\n');
  const wanted = Number((await lines.next()).value);
  return await page.evaluate(
    (count) =>
      new Promise((resolve) => {
        const look = () => {
          const shown = Number(document.querySelector('[role="slider"]')?.getAttribute("aria-valuemax"));
          if (shown >= count) resolve((performance.now() - globalThis.openedAt) / 1000);
          else requestAnimationFrame(look);
        };
        globalThis.lastSource.dispatchEvent(new Event("error"));
        look();
      }),
    wanted,
  );
}

await signedIn(async (page) => {
  const browser = page.context().browser();
  const context = await browser.newContext({
    viewport: { width: 1440, height: 960 },
    storageState: await page.context().storageState(),
  });
  context.setDefaultTimeout(90_000);
  await page.close();
  await timeTo(context, "/", "textarea"); // fills the cache of the browser, as an earlier visit does
  const { steps } = JSON.parse(env("OFFING_RUNS", "{}"));
  const figures = {
    open: await medianTo(context, `/runs/${long}?tab=timeline`, ".step"),
    home: await medianTo(context, "/", ".run-row"),
    runs: await medianTo(context, "/runs", ".run-row"),
    scroll: await measureScrolling(context, steps),
    catchUp: await measureCatchingUp(context),
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}, '"done"');
input.close(); // otherwise the script waits for more
