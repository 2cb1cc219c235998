// The Training page in a real browser: a job moves on without a reload, is paused and cancelled; a version is tried as a
// canary, taken back and promoted. Needs a running stack with a job under way, whose steps somebody commits until it
// is told to rest, and a candidate; exit code 0 when all of it holds.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const env = (name, otherwise) => process.env[name] || otherwise;
const base = env("OFFING_URL", "http://127.0.0.1:8400");
const shots = env("OFFING_SHOTS", "");
const WIDE = { width: 1440, height: 960 };
const NARROW = { width: 390, height: 844 };

/** The job's step, as its head tells it. */
async function step(job) {
  const said = (await job.getByText(/^step \d+/).textContent()) ?? "";
  return Number(/\d+/.exec(said)?.[0]);
}

async function watchAndStop(page) {
  const job = page.getByRole("article");
  await job.getByRole("img", { name: /^Reward: 0\.\d/ }).waitFor();
  await job.getByRole("region", { name: "Groups" }).getByText("used, attempts differ").waitFor();
  const before = await step(job);
  await page.waitForFunction(
    (was) => Number(/^step (\d+)/m.exec(document.querySelector(".job-meta")?.innerText ?? "")?.[1]) > was,
    before,
  );
  await pictures(page, "job");
  await job.getByRole("button", { name: "Pause", exact: true }).click();
  await job.getByText("Paused", { exact: true }).waitFor();
  await job.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the job" }).click();
  await job.getByText("Cancelled", { exact: true }).waitFor();
}

async function changeVersions(page) {
  await page.getByRole("button", { name: /newest/ }).click();
  const row = page.getByRole("article").getByRole("listitem").first();
  const act = async (name, does, then) => {
    await row.getByRole("button", { name, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: does, exact: true }).click();
    await row.getByText(then).waitFor();
  };
  await act("Canary", "Start the canary", "Canary, 10 % of new runs");
  await pictures(page, "versions");
  await act("Take back", "Take back", "Candidate");
  await act("Promote", "Promote", "Active");
}

async function pictures(page, name) {
  await page.setViewportSize(NARROW);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(over <= 0, `${name} on a phone is ${over} px wider than the screen`);
  for (const [size, at] of Object.entries({ narrow: NARROW, wide: WIDE })) {
    await page.setViewportSize(at);
    for (const colorScheme of shots ? ["dark", "light"] : []) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.screenshot({ path: `${shots}/${name}-${size}-${colorScheme}.png` });
    }
  }
}

async function main() {
  const browser = await chromium.launch({
    executablePath: env("OFFING_CHROMIUM", "/usr/bin/chromium"),
    args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
  });
  try {
    const page = await browser.newPage({ viewport: WIDE });
    page.setDefaultTimeout(20_000);
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(new URL(env("OFFING_LOGIN"), base).href);
    await page.getByRole("link", { name: "Training" }).click();
    await watchAndStop(page);
    await changeVersions(page);
    assert.deepEqual(errors, [], "nothing is thrown");
    console.log("a job moved on, rested and ended; a version was tried, taken back and promoted");
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error.message ?? error);
  process.exitCode = 1;
});
