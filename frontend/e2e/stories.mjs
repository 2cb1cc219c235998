// The stories in a real browser: axe checks each of them in every frame, also contrast, and overlays when they are open.
// Starts the development server itself and needs no stack. The exit code is 0 if there is no violation.
//
//   OFFING_SHOTS     a folder for screenshots, wide and narrow, light and dark; none when empty
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { createServer } from "vite";

const shots = process.env.OFFING_SHOTS ?? "";
const PORT = Number(process.env.OFFING_STORIES_PORT ?? 8398);
const WIDE = { width: 1440, height: 960 };
const NARROW = { width: 390, height: 844 };
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

async function findViolations(page, what, rules = {}) {
  // Each story is there four times, so its landmarks are not unique.
  const violations = await page.evaluate(async (more) => {
    const options = {
      resultTypes: ["violations"],
      rules: { ...more, region: { enabled: false }, "landmark-unique": { enabled: false } },
    };
    const result = await globalThis.axe.run(document, options);
    return result.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
    );
  }, rules);
  assert.deepEqual(violations, [], what);
}

/** Open the button of a story in its first frame and check what opens. */
async function checkOpened(page, story, button, role) {
  const frame = page.getByRole("region", { name: story, exact: true }).locator("[data-frame]").first();
  await frame.getByRole("button", { name: button }).first().click();
  await page.getByRole(role).first().waitFor();
  // An open combo box hides the rest of the page from screen readers. Its field keeps the focus, and Tab closes it.
  const hidden = { enabled: role !== "listbox" };
  await findViolations(page, `${story}, open`, { "aria-hidden-focus": hidden, "page-has-heading-one": hidden });
  if (shots) await page.screenshot({ path: `${shots}/story-${story.toLowerCase()}.png` });
  await page.keyboard.press("Escape");
  await page.getByRole(role).first().waitFor({ state: "detached" });
}

async function takeScreenshots(page) {
  for (const [size, viewport] of Object.entries({ wide: WIDE, narrow: NARROW })) {
    await page.setViewportSize(viewport);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(over <= 0, `the stories are ${over} px wider than the ${size} screen`);
    for (const colorScheme of shots ? ["light", "dark"] : []) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.locator("main").evaluate((element) => {
        element.style.height = "auto";
      });
      await page.screenshot({ path: `${shots}/stories-${size}-${colorScheme}.png`, fullPage: true });
    }
  }
  await page.setViewportSize(WIDE);
}

const server = await createServer({ server: { port: PORT, strictPort: true }, logLevel: "error" });
await server.listen();
const browser = await chromium.launch({
  executablePath: process.env.OFFING_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
});
try {
  const page = await browser.newPage({ viewport: WIDE });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(`http://localhost:${PORT}/stories`);
  await page.getByRole("combobox", { name: "Engine" }).nth(3).waitFor({ timeout: 90_000 });
  await page.addScriptTag({ path: AXE });
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await findViolations(page, `the stories, ${colorScheme}`);
  }
  await checkOpened(page, "Menu", "Export", "menu");
  await checkOpened(page, "Popover", "Budget", "dialog");
  await checkOpened(page, "Combobox", "Options of Engine", "listbox");
  await checkOpened(page, "Dialog", "Cancel the run", "dialog");
  await takeScreenshots(page);
  assert.deepEqual(errors, [], "the page throws no error");
  console.log("stories: no violation");
} catch (error) {
  console.error(error.message ?? error);
  process.exitCode = 1;
} finally {
  await browser.close();
  await server.close();
}
