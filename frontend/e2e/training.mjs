// The training view in a real browser: a job advances without a reload, is paused and cancelled; a version becomes a
// canary, is withdrawn and promoted. Needs a running stack with a candidate and a running job, whose steps a process
// commits until a pause is requested. The exit code is 0 if every check passes.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import { screenshots, signedIn } from "./browser.mjs";

/** Return the training step shown in the header of the job. */
async function step(job) {
  const text = (await job.getByText(/^step \d+/).textContent()) ?? "";
  return Number(/\d+/.exec(text)?.[0]);
}

async function watchAndStop(page) {
  const job = page.getByRole("article");
  await job.getByRole("img", { name: /^Reward: 0\.\d/ }).waitFor();
  await job.getByRole("img", { name: /^Success: 0\.\d/ }).waitFor();
  await job.getByRole("img", { name: /^Violations: 0\.0\d/ }).waitFor();
  await job.getByRole("region", { name: "Groups" }).getByText("used, different rewards").waitFor();
  const before = await step(job);
  await page.waitForFunction(
    (was) => Number(/^step (\d+)/m.exec(document.querySelector(".job-meta")?.innerText ?? "")?.[1]) > was,
    before,
  );
  await screenshots(page, "job");
  await job.getByRole("button", { name: "Pause", exact: true }).click();
  await job.getByText("Paused", { exact: true }).waitFor();
  await job.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the job" }).click();
  await job.getByText("Cancelled", { exact: true }).waitFor();
}

async function changeVersions(page) {
  await page.getByRole("button", { name: /planner .*newest/ }).click();
  const row = page.getByRole("article").getByRole("listitem").first();
  const act = async (name, confirm, then) => {
    await row.getByRole("button", { name, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: confirm, exact: true }).click();
    await row.getByText(then).waitFor();
  };
  await act("Canary", "Start canary", "Canary, 10% of new runs");
  await screenshots(page, "versions");
  await act("Withdraw", "Withdraw", "Candidate");
  await act("Promote", "Promote", "Active");
}

await signedIn(async (page) => {
  await page.getByRole("link", { name: "Training" }).click();
  await watchAndStop(page);
  await changeVersions(page);
}, "a job advanced, was paused and cancelled; a version became a canary, was withdrawn and promoted");
