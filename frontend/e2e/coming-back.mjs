// Finding a run again among 300 in a real browser: the best match of a search is first with its words marked, pinned runs
// stand first, and Back comes to the place in the list. Needs the API with the runs of `tests/e2e/test_coming_back.py`.
// The exit code is 0 if every check passes.
//
//   OFFING_URL    http://127.0.0.1:8400 by default
//   OFFING_LOGIN  a one-time link, as `offing login` prints it
//   OFFING_SHOTS  a folder for screenshots, wide and narrow, light and dark; none when empty
import assert from "node:assert/strict";
import { base, screenshots, signedIn } from "./browser.mjs";

/** Names of the runs in view, in order. */
const names = (page) => page.locator("a[data-run]").allTextContents();
const open = (page, path) => page.goto(new URL(path, base).href);

/** How far the list is scrolled, and the run at the top of what is in view. */
const place = (page) =>
  page.evaluate(() => {
    const view = document.getElementById("view");
    const top = view.getBoundingClientRect().top;
    const first = [...document.querySelectorAll("a[data-run]")].find((row) => row.getBoundingClientRect().top >= top);
    return { top: Math.round(view.scrollTop), run: first?.dataset.run, offset: first?.getBoundingClientRect().top };
  });

async function scrollTo(page, top) {
  for (let at = 0; at < top; at += 1500) {
    await page.evaluate((to) => document.getElementById("view").scrollTo(0, to), at);
    await page.waitForTimeout(60);
  }
  await page.waitForFunction((to) => {
    const view = document.getElementById("view");
    view.scrollTo(0, to);
    const { top, bottom } = view.getBoundingClientRect();
    const rows = [...document.querySelectorAll("a[data-run]")].map((row) => row.getBoundingClientRect().top);
    return Math.abs(view.scrollTop - to) < 2 && rows.filter((at) => at >= top && at < bottom).length > 5;
  }, top);
}

/** The place in the list once its rows are measured, which moves them, and the pages that it asked for have come. */
async function settledPlace(page) {
  let before = await place(page);
  for (let equal = 0; equal < 5; ) {
    await page.waitForTimeout(50);
    const now = await place(page);
    const isLoading = await page.getByText("Loading earlier runs…").isVisible();
    equal = !isLoading && now.run === before.run && now.offset === before.offset ? equal + 1 : 0;
    before = now;
  }
  return before;
}

async function search(page) {
  await open(page, "/runs");
  await page.getByRole("searchbox", { name: "Search runs" }).fill("harbor");
  await page.locator("mark").first().waitFor();
  await page.getByRole("button", { name: "Show all runs that match" }).click();
  const best = await names(page);
  assert.equal(best[0], "Harbor fees", "a title that has the word is first");
  assert.match(best[1], /town 200 /, "then the run with the tag");
  assert.match(best[2], /dredging the harbor/, `then questions: ${best.slice(0, 5).join(" | ")}`);
  assert.equal(await page.locator("mark").first().textContent(), "Harbor");
  await screenshots(page, "search");
  await page.getByRole("combobox", { name: "Order" }).selectOption({ label: "Newest first" });
  await page.waitForURL(/order=newest/);
  await page.waitForFunction(() => /town 3 /.test(document.querySelector("a[data-run]")?.textContent ?? ""));
}

async function pinned(page) {
  await open(page, "/runs");
  await page.getByRole("heading", { name: "Pinned" }).waitFor();
  const before = await names(page);
  assert.deepEqual(
    before.slice(0, 2).map((name) => name.match(/\d+/)[0]),
    ["40", "120"],
  );
  await page.getByRole("button", { name: "Actions for “How did town 5 pay for its lighthouse?”" }).click();
  await page.getByRole("menuitem", { name: "Pin" }).click();
  await page.waitForFunction(() => /town 5 /.test(document.querySelector("a[data-run]").textContent));
  await page.reload();
  await page.getByRole("heading", { name: "Pinned" }).waitFor();
  const after = await names(page);
  assert.match(after[0], /town 5 /);
  assert.equal(new Set(after).size, after.length, "no run is listed twice");
  await screenshots(page, "runs");
  await page.getByRole("button", { name: "1 earlier question" }).click();
  await page.getByRole("list", { name: "Earlier questions of the thread" }).getByRole("link").waitFor();
  await screenshots(page, "thread");
  await open(page, "/");
  await page.getByRole("heading", { name: "Pinned" }).waitFor();
  await screenshots(page, "home");
}

async function comeBack(page, path, top) {
  await open(page, path);
  await page.locator("a[data-run]").first().waitFor();
  await scrollTo(page, top);
  const left = await settledPlace(page);
  await page.locator(`a[data-run="${left.run}"]`).click();
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
  await page.getByRole("tab").first().waitFor();
  const opened = await page.evaluate(() => document.getElementById("view").scrollTop);
  assert.ok(opened < 200, "a run is opened at its top");
  let pages = 0;
  page.on("request", (request) => /\/api\/v1\/runs\?.*limit=50/.test(request.url()) && pages++);
  await page.goBack();
  await page.locator(`a[data-run="${left.run}"]`).waitFor();
  await page.waitForTimeout(400);
  const back = await place(page);
  assert.equal(back.run, left.run, "the same run is at the top");
  assert.ok(Math.abs(back.offset - left.offset) < 4, `it is at ${back.offset} and was at ${left.offset}`);
  assert.equal(pages, 0, "no page of the list is fetched again");
}

signedIn(async (page) => {
  await search(page);
  await pinned(page);
  await comeBack(page, "/runs", 14_000);
  await comeBack(page, "/runs?q=lighthouse&all=true", 9_000);
}, "A run is found again, and Back comes to its place.");
