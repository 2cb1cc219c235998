// The Training page in a real browser: a job moves on without a reload, is paused and cancelled; a version is tried as a
// canary, taken back and promoted. Needs a running stack with a job under way, whose steps somebody commits until it
// is told to rest, and a candidate; exit code 0 when all of it holds.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import { pictures, signedIn } from "./browser.mjs";

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
  await page.getByRole("button", { name: /planner .*newest/ }).click();
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

await signedIn(async (page) => {
  await page.getByRole("link", { name: "Training" }).click();
  await watchAndStop(page);
  await changeVersions(page);
}, "a job moved on, rested and ended; a version was tried, taken back and promoted");
