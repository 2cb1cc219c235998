// Learning from rated runs in a real browser: what there is to learn from, a job that a worker does, the candidate's
// text with a link to its run, promoted and rolled back. Needs a running stack with a rated run that carries a
// correction, and the tenant's consent; exit code 0 when all of it holds.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_CORRECTED what the correction says
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import { base, env, pictures, signedIn } from "./browser.mjs";

async function learn(page) {
  await page.getByRole("button", { name: "Learn from rated runs" }).click();
  const view = page.getByRole("article", { name: "Learn from rated runs" });
  await view.getByText("rated runs", { exact: true }).waitFor();
  await view.getByRole("combobox", { name: /Who compares/ }).fill("extractive");
  await view.getByText(/^Measure it afterwards/).click();
  await pictures(page, "learn");
  await view.getByRole("button", { name: "Learn", exact: true }).click();
  await page.getByRole("article", { name: /^Job / }).getByText("Done", { exact: true }).waitFor();
}

async function readAndPromote(page) {
  const made = page.getByRole("region", { name: "lessons@2" });
  await made.getByRole("region", { name: "Experiences" }).getByText(env("OFFING_CORRECTED", "")).waitFor();
  await pictures(page, "candidate");
  await made.getByRole("button", { name: "Promote", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Promote", exact: true }).click();
  await dialog.getByText(/not evaluated on the same tasks/).waitFor();
  await dialog.getByRole("button", { name: "Promote without the gate" }).click();
  await made.getByText("Active", { exact: true }).waitFor();
  await made.getByRole("button", { name: "Roll back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await made.getByText("Retired", { exact: true }).waitFor();
  await made.getByRole("region", { name: "Experiences" }).getByRole("link").first().click();
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
}

async function versions(page) {
  await page.goto(new URL("/training?policy=lessons", base).href);
  await page.getByText("What it says").first().click();
  await page.getByRole("region", { name: "Experiences" }).first().waitFor();
  await pictures(page, "library");
}

await signedIn(async (page) => {
  await page.getByRole("link", { name: "Training" }).click();
  await learn(page);
  await readAndPromote(page);
  await versions(page);
}, "rated runs were learned from; what came of it was read, promoted and rolled back");
