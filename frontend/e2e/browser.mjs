// A real browser for the scripts beside this one: opened, signed in, watched for errors, and photographed.
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

/** On a phone nothing is wider than the screen. Leaves the page wide. */
export async function pictures(page, name) {
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

/** What went over the wire, for whoever holds it against the OpenAPI document. Returns how to write it down. */
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
  // An answer that the page has left behind has no body any more, and nothing to hold against the document.
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

/** Signs in and does `work` on the page; exit code 1 when it fails or the page throws. */
export async function signedIn(work, done) {
  const browser = await chromium.launch({
    executablePath: env("OFFING_CHROMIUM", "/usr/bin/chromium"),
    args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
  });
  try {
    const page = await browser.newPage({ viewport: WIDE });
    page.setDefaultTimeout(90_000);
    const errors = [];
    const write = recorded(page);
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(new URL(env("OFFING_LOGIN"), base).href);
    await work(page);
    await write();
    assert.deepEqual(errors, [], "nothing is thrown");
    console.log(done);
  } catch (error) {
    console.error(error.message ?? error);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}
