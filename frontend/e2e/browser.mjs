// A real browser for the scripts in this folder: opens it, signs in, records errors and takes screenshots.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { chromium } from "playwright-core";

export const env = (name, otherwise) => process.env[name] || otherwise;
export const base = env("OFFING_URL", "http://127.0.0.1:8400");
const shots = env("OFFING_SHOTS", "");
const exchanges = env("OFFING_EXCHANGES", "");
const WIDE = { width: 1440, height: 960 };
const NARROW = { width: 390, height: 844 };

async function fitsItsWidth(page, what) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(over <= 0, `${what} is ${over} px wider than the screen`);
}

/** Check that nothing is wider than a phone screen, then restore the wide viewport. */
export async function screenshots(page, name) {
  await page.setViewportSize(NARROW);
  await fitsItsWidth(page, `${name} on a phone`);
  for (const [size, at] of Object.entries({ narrow: NARROW, wide: WIDE })) {
    await page.setViewportSize(at);
    for (const colorScheme of shots ? ["dark", "light"] : []) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.screenshot({ path: `${shots}/${name}-${size}-${colorScheme}.png` });
    }
  }
}

/**
 * Record the exchanges with the API for comparison with the OpenAPI document. Returns a function that writes them to a
 * file.
 */
function recorded(page) {
  const kept = [];
  page.on("response", (response) => kept.push(exchangeOf(response)));
  return async () => exchanges && writeFileSync(exchanges, JSON.stringify((await Promise.all(kept)).filter(Boolean)));
}

async function exchangeOf(response) {
  const request = response.request();
  const { pathname, search } = new URL(request.url());
  if (!pathname.startsWith("/api/v1/")) return null;
  const media = response.headers()["content-type"] ?? "";
  // The body of a response is no longer available after the page has navigated. There is nothing to compare then.
  const answer = media.startsWith("application/json") ? await response.text().catch(() => null) : null;
  return {
    method: request.method(),
    path: pathname,
    query: search.slice(1),
    headers: { "content-type": request.headers()["content-type"] ?? "" },
    body: request.postDataBuffer()?.toString("base64") ?? "",
    status: response.status(),
    media_type: answer === null ? "" : media.split(";")[0],
    answer: answer ?? "",
  };
}

export function openBrowser() {
  return chromium.launch({
    executablePath: env("OFFING_CHROMIUM", "/usr/bin/chromium"),
    args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
  });
}

/** Sign in and run `work` on the page. The exit code is 1 if `work` fails or the page throws an error. */
export async function signedIn(work, done) {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage({ viewport: WIDE });
    page.setDefaultTimeout(90_000);
    const errors = [];
    const write = recorded(page);
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(new URL(env("OFFING_LOGIN"), base).href);
    await work(page);
    await write();
    assert.deepEqual(errors, [], "the page throws no error");
    console.log(done);
  } catch (error) {
    console.error(error.message ?? error);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}
