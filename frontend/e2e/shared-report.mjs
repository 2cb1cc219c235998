// Open a shared report of hostile texts in a browser without a session: no script of it runs, no request leaves the
// server, and nothing is wider than the screen. OFFING_SHARED is the address of the page.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { env, screenshots } from "./browser.mjs";

const address = env("OFFING_SHARED");
const origin = new URL(address).origin;
const browser = await chromium.launch({
  executablePath: env("OFFING_CHROMIUM", "/usr/bin/chromium"),
  args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
});
try {
  const context = await browser.newContext({ viewport: { width: 1440, height: 960 } });
  const page = await context.newPage();
  const requests = [];
  const errors = [];
  const dialogs = [];
  page.on("request", (request) => requests.push(request));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("dialog", (dialog) => dialogs.push(dialog.message()) && dialog.dismiss());
  page.setDefaultTimeout(90_000);
  await page.goto(address);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await screenshots(page, "shared");
  for (const marker of await page.locator("a.cite").all()) await marker.hover({ trial: true });
  await page.locator("a.cite").first().click();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => window.attacked), undefined, "no script of the report ran");
  assert.deepEqual(dialogs, []);
  assert.deepEqual(errors, []);
  const foreign = requests.map((request) => request.url()).filter((url) => !url.startsWith(`${origin}/`));
  assert.deepEqual(foreign, [], "no request leaves the server");
  const api = requests.filter((request) => new URL(request.url()).pathname.startsWith("/api/"));
  assert.deepEqual(
    api.map((request) => request.url()),
    [`${origin}/api/v1${new URL(address).pathname}`],
    "the page asks for the report only",
  );
  for (const request of requests) assert.equal((await request.allHeaders()).referer, undefined, request.url());
  const active = "article :is(script, iframe, object, embed, form, img, svg, style, link, video, base, meta)";
  assert.equal(await page.locator(active).count(), 0, "the report has no element of its texts");
  const links = await page.locator("article a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assert.ok(links.length > 50);
  for (const href of links) assert.match(href, /^#citation-\d+$|^https?:\/\//);
  assert.equal(page.url().split("#")[0], address, "the page was not left");
  console.log(`${links.length} links, ${requests.length} requests`);
} catch (error) {
  console.error(error.message ?? error);
  process.exitCode = 1;
} finally {
  await browser.close();
}
