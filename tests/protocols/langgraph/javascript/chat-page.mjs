// A page with `useStream` in Chromium, for the scripts of this folder.
//
//   OFFING_URL       the address of the API
//   OFFING_KEY       a key
//   OFFING_CHROMIUM  the browser, /usr/bin/chromium by default
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const frontend = createRequire(new URL("../../../../frontend/package.json", import.meta.url));
const { build } = await import(pathToFileURL(frontend.resolve("vite")).href);
const { chromium } = frontend("playwright-core");

const { OFFING_URL, OFFING_KEY, OFFING_CHROMIUM = "/usr/bin/chromium" } = process.env;

/** The page as one script. */
async function bundle() {
  const entry = fileURLToPath(new URL("use-stream/page.jsx", import.meta.url));
  const built = await build({
    configFile: false,
    logLevel: "warn",
    define: { "process.env.NODE_ENV": '"production"' },
    build: { write: false, minify: false, rollupOptions: { input: entry, output: { format: "iife" } } },
  });
  return built.output.find((file) => file.type === "chunk").code;
}

/** Open the page for an assistant. `input` goes beside the message of each run. */
export async function openChat(assistant, input) {
  const script = await bundle();
  const browser = await chromium.launch({ executablePath: OFFING_CHROMIUM, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await page.route("**/chat*", (route) =>
    route.fulfill({ contentType: "text/html", body: '<!doctype html><div id="root"></div><script src="/chat.js"></script>' }),
  );
  await page.route("**/chat.js", (route) => route.fulfill({ contentType: "text/javascript", body: script }));
  const query = new URLSearchParams({ key: OFFING_KEY, assistant, input: JSON.stringify(input) });
  await page.goto(`${OFFING_URL}/chat?${query}`);
  return { browser, page };
}

export const texts = (page) => page.locator("li").allTextContents();

export const waitForText = (page, id, text) =>
  page.waitForFunction(([of, is]) => document.getElementById(of)?.textContent === is, [id, text]);

export const waitForMessage = (page, text) =>
  page.waitForFunction((is) => [...document.querySelectorAll("li")].some((li) => li.textContent === is), text);
