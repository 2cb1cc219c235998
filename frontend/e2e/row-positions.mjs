// Scrolls through the timeline of a run whose rows have very different heights, opens steps and changes the width, and
// checks that rows never overlap once the page is still, and that each step is shown once and in order.
//
//   OFFING_LOGIN, OFFING_URL, OFFING_CHROMIUM   as for the other scripts
//   OFFING_RUN                                  the run
import assert from "node:assert/strict";
import { base, env, openBrowser } from "./browser.mjs";

/** Milliseconds after which a page counts as broken. Only a fault takes longer. */
const PATIENCE = 60_000;
const SIZES = [
  { width: 1440, height: 960 },
  { width: 1000, height: 700 },
  { width: 390, height: 844 },
  { width: 1440, height: 960 },
];
/** How far each move goes, as a part of what can be scrolled: small steps and jumps into parts that are not loaded. */
const MOVES = [0, 0.01, 0.02, 0.03, 0.5, 0.51, 0.25, 0.26, 0.9, 0.91, 1, 0.6, 0.05, 0.04];

/** The positions of the rows once nothing has moved for some frames. */
function whenStill() {
  const read = () =>
    [...document.querySelectorAll(".timeline > ol > li")]
      .map((row) => ({
        box: row.getBoundingClientRect(),
        text: row.querySelector(".step-seq, .step-skeleton")?.textContent,
      }))
      .map(({ box, text }) => ({ top: box.top, bottom: box.bottom, seq: Number(text) }))
      .sort((one, other) => one.top - other.top);
  return new Promise((resolve) => {
    let before = "";
    let still = 0;
    const look = () => {
      const rows = read();
      const now = JSON.stringify(rows);
      still = now === before && rows.length > 0 && !document.querySelector(".step-skeleton") ? still + 1 : 0;
      before = now;
      if (still >= 5) resolve(rows);
      else requestAnimationFrame(look);
    };
    look();
  });
}

function check(rows, when) {
  rows.slice(1).forEach((row, at) => {
    const above = rows[at];
    assert.equal(row.seq, above.seq + 1, `${when}: step ${row.seq} follows step ${above.seq}`);
    assert.ok(
      row.top >= above.bottom - 1,
      `${when}: step ${row.seq} begins ${above.bottom - row.top} px inside the one above`,
    );
    assert.ok(row.top <= above.bottom + 1, `${when}: ${row.top - above.bottom} px are empty above step ${row.seq}`);
  });
}

const browser = await openBrowser();
try {
  const context = await browser.newContext({ viewport: SIZES[0] });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  await page.goto(new URL(env("OFFING_LOGIN"), base).href);
  await page.locator("h1").first().waitFor();
  await page.goto(new URL(`/runs/${env("OFFING_RUN")}?tab=timeline`, base).href);
  await page.locator(".step").first().waitFor();
  let checked = 0;
  for (const size of SIZES) {
    await page.setViewportSize(size);
    for (const part of MOVES) {
      await page.evaluate((to) => {
        const list = document.querySelector(".timeline > ol");
        let element = list;
        while (
          element &&
          !(element.scrollHeight > element.clientHeight + 50 && /auto|scroll/.test(getComputedStyle(element).overflowY))
        )
          element = element.parentElement;
        const scroller = element ?? document.scrollingElement;
        scroller.scrollTop = to * (scroller.scrollHeight - scroller.clientHeight);
      }, part);
      check(await page.evaluate(whenStill), `at ${part} of ${size.width} px`);
      if (part === 0.51) {
        await page
          .locator(".step")
          .nth(3)
          .evaluate((step) => step.click());
        check(await page.evaluate(whenStill), `with an open step at ${size.width} px`);
      }
      checked += 1;
    }
  }
  console.log(JSON.stringify({ checked }));
} finally {
  await browser.close();
}
