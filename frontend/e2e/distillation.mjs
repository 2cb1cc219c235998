// Distillation of rated runs in a real browser: the preview, a job that a worker runs, the text of the candidate with a
// link to its run, promotion and rollback. Needs a running stack with a rated run that has a correction, and the
// tenant's training opt-in. The exit code is 0 if every check passes.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_CORRECTED the text of the correction
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import { base, env, screenshots, signedIn } from "./browser.mjs";

async function distill(page) {
  await page.getByRole("button", { name: "Distill rated runs" }).click();
  const view = page.getByRole("article", { name: "Distill rated runs" });
  await view.getByText("rated runs", { exact: true }).waitFor();
  await view.getByRole("combobox", { name: /Engine for comparisons/ }).fill("extractive");
  await view.getByText(/^Evaluate on held-out tasks/).click();
  await screenshots(page, "distill");
  await view.getByRole("button", { name: "Distill", exact: true }).click();
  await page.getByRole("article", { name: /^Job / }).getByText("Done", { exact: true }).waitFor();
}

async function readAndPromote(page) {
  const candidate = page.getByRole("region", { name: "lessons@2" });
  await candidate.getByRole("region", { name: "Experiences" }).getByText(env("OFFING_CORRECTED", "")).waitFor();
  await screenshots(page, "candidate");
  await candidate.getByRole("button", { name: "Promote", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Promote", exact: true }).click();
  await dialog.getByText(/not evaluated on the same tasks/).waitFor();
  await dialog.getByRole("button", { name: "Promote without the gate" }).click();
  await candidate.getByText("Active", { exact: true }).waitFor();
  await candidate.getByRole("button", { name: "Roll back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await candidate.getByText("Retired", { exact: true }).waitFor();
  await candidate.getByRole("region", { name: "Experiences" }).getByRole("link").first().click();
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
}

async function versions(page) {
  await page.goto(new URL("/training?policy=lessons", base).href);
  await page.getByText("Show text").first().click();
  await page.getByRole("region", { name: "Experiences" }).first().waitFor();
  await screenshots(page, "library");
}

await signedIn(async (page) => {
  await page.getByRole("link", { name: "Training" }).click();
  await distill(page);
  await readAndPromote(page);
  await versions(page);
}, "rated runs were distilled; the candidate was read, promoted and rolled back");
