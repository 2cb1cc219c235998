// Opens every screen of `screen-list.mjs` in a running stack, at desktop and phone width, light and dark, in each
// language. Each must have no violation of WCAG AA that axe finds, no error in the console, no text that lacks its
// translation, nothing wider than the screen, also while it loads on a phone, and no target smaller than 24 px. The exit
// code is 0 if all are so.
//
//   node e2e/screens.mjs [--quick] [--only PATTERN] [--shots DIR]
//
//   --quick          only the screens and frames of the short walk
//   --only           screens whose name matches the regular expression
//   --shots          a folder for screenshots, and a page README.md that shows them
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link, as `offing login` prints it
//   OFFING_IDS       the ids of the sample runs as JSON; `python -m tests.e2e.screens` makes them and starts this script
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { formatter } from "@lingui/format-po";
import { chromium } from "playwright-core";
import { SCREENS } from "./screen-list.mjs";

const { values: options } = parseArgs({
  options: { quick: { type: "boolean" }, only: { type: "string" }, shots: { type: "string" } },
});
const base = process.env.OFFING_URL || "http://127.0.0.1:8400";
const ids = JSON.parse(process.env.OFFING_IDS || "{}");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
const WIDE = { width: 1440, height: 960 };
const PHONE = { width: 390, height: 844 };
const MIN_TARGET_PX = 24;

/** What each language is looked at in. Chinese has other widths of text; colors are the same in both. */
const FRAMES = {
  en: [
    { name: "wide-light", size: WIDE, colorScheme: "light", quick: true },
    { name: "wide-dark", size: WIDE, colorScheme: "dark" },
    { name: "phone-dark", size: PHONE, colorScheme: "dark", quick: true },
    { name: "phone-light", size: PHONE, colorScheme: "light" },
  ],
  "zh-Hans": [
    { name: "wide-light", size: WIDE, colorScheme: "light" },
    { name: "phone-dark", size: PHONE, colorScheme: "dark", quick: true },
  ],
};

/** Return the catalog of a language as a map from the English text to its translation, and the ids of its texts. */
async function readCatalog(language) {
  const content = readFileSync(new URL(`../src/locales/${language}.po`, import.meta.url), "utf8");
  const entries = Object.entries(await formatter().parse(content, { locale: language, sourceLocale: "en" }));
  return {
    texts: new Map(entries.map(([id, { message, translation }]) => [message ?? id, translation ?? id])),
    ids: entries.map(([id]) => id),
  };
}

/** Wait until the page loads nothing: its code and texts, what it asked the server for, and its fonts. */
async function settle(page) {
  await page.locator("main, dialog[open]").first().waitFor();
  await page.waitForFunction(() => !document.querySelector("[data-loading]"));
  // An open stream keeps the network busy, so this asks for a short rest of the document.
  await page.evaluate(() =>
    new Promise((resolve) => {
      let timer = setTimeout(resolve, 250);
      const observer = new MutationObserver(() => {
        clearTimeout(timer);
        timer = setTimeout(resolve, 250);
      });
      observer.observe(document.body, { childList: true, subtree: true });
      setTimeout(resolve, 3_000);
    }).then(() => document.fonts.ready.then(() => undefined)),
  );
}

async function findViolations(page) {
  return await page.evaluate(async (tags) => {
    const result = await globalThis.axe.run(document, {
      runOnly: { type: "tag", values: tags },
      resultTypes: ["violations"],
      rules: { "target-size": { enabled: true } },
    });
    return result.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `axe ${id}: ${html.slice(0, 160)}`));
  }, TAGS);
}

/** Faults of the layout and the texts that axe does not look for. */
async function findFaults(page, messageIds) {
  return await page.evaluate(
    ([minimum, known]) => {
      const faults = [];
      const root = document.documentElement;
      const over = root.scrollWidth - root.clientWidth;
      if (over > 0) faults.push(`${over} px wider than the screen`);
      const dialog = document.querySelector("dialog[open]");
      for (const element of (dialog ?? document).querySelectorAll(
        "a[href], button, select, input, summary, [role=tab]",
      )) {
        const box = element.getBoundingClientRect();
        // What is in a line of text is as high as the line, which WCAG allows. What is hidden is reached by its label.
        const isInText = getComputedStyle(element).display === "inline" || element.closest("p, .sentence") !== null;
        const isOutside = box.right <= 0 || box.width <= 1 || box.height <= 1;
        const isHidden = isOutside || element.disabled || !element.checkVisibility({ visibilityProperty: true });
        const isLabeled = /^(checkbox|radio|range)$/.test(element.type);
        const target = isLabeled ? (element.closest("label") ?? element.labels?.[0] ?? element) : element;
        const { width, height } = target.getBoundingClientRect();
        if (!isInText && !isHidden && Math.min(width, height) < minimum - 0.5) {
          const size = `${Math.round(width)} × ${Math.round(height)}`;
          faults.push(`a target of ${size} px: ${element.outerHTML.slice(0, 120)}`);
        }
      }
      const ids = new Set(known);
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const text = walker.currentNode.data.trim();
        if (ids.has(text)) faults.push(`the id of a text is shown: ${text}`);
      }
      return faults;
    },
    [MIN_TARGET_PX, messageIds],
  );
}

/** Let parts of the code arrive one after the other, so that the page is seen with each of them missing. */
async function delayCode(page) {
  await page.route("**/assets/**", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 40));
    await route.continue().catch(() => {}); // the page was closed
  });
}

/** In each frame while the page loads, look for what is wider than the screen. Runs in the page. */
function watchWidth() {
  const widest = { over: 0, culprit: "" };
  globalThis.widestWhileLoading = widest;
  const look = () => {
    const root = document.documentElement;
    const over = root.scrollWidth - root.clientWidth;
    if (over > widest.over) {
      const isOutside = (element) => element.getBoundingClientRect().right > root.clientWidth + 0.5;
      const culprit = [...document.querySelectorAll("body *")].find(isOutside);
      Object.assign(widest, { over, culprit: culprit?.outerHTML.slice(0, 160) ?? "" });
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

async function findWidthFaults(page) {
  const { over, culprit } = await page.evaluate(() => globalThis.widestWhileLoading);
  return over > 0 ? [`while it loads on a phone, ${over} px wider than the screen: ${culprit}`] : [];
}

async function takeScreenshot(session, name) {
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 70 });
  writeFileSync(`${options.shots}/${name}.webp`, Buffer.from(data, "base64"));
}

/** Return what is wrong with a screen in a language, in each frame. */
async function walk(context, screen, language, catalog) {
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  const found = [];
  page.on("pageerror", (error) => found.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !screen.errors?.test(message.text())) found.push(`console: ${message.text()}`);
  });
  const say = (text) => catalog.texts.get(text) ?? text;
  const place = `${screen.name}, ${language}`;
  try {
    page.setDefaultTimeout(60_000);
    await page.setViewportSize(PHONE);
    await page.addInitScript(watchWidth);
    await delayCode(page);
    await page.goto(new URL(screen.path(ids), base).href);
    await settle(page);
    found.push(...(await findWidthFaults(page)));
    await page.setViewportSize(WIDE);
    await settle(page);
    await screen.open?.(page, say);
    await settle(page);
    await page.evaluate(AXE);
    for (const frame of FRAMES[language].filter(({ quick }) => quick || !options.quick)) {
      await page.setViewportSize(frame.size);
      await page.emulateMedia({ colorScheme: frame.colorScheme, reducedMotion: "reduce" });
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      const faults = [...(await findViolations(page)), ...(await findFaults(page, catalog.ids))];
      found.push(...faults.map((fault) => `${frame.name}: ${fault}`));
      if (options.shots) await takeScreenshot(session, `${screen.name}-${frame.name}-${language}`);
    }
  } catch (error) {
    found.push(error.message ?? String(error));
  } finally {
    await page.close();
  }
  return [...new Set(found)].map((fault) => `${place}: ${fault}`);
}

function writeIndex(screens) {
  const sections = screens.map(({ name }) => {
    const images = Object.entries(FRAMES).flatMap(([language, frames]) =>
      frames.map(({ name: frame, size }) => {
        const width = size === PHONE ? 120 : 360;
        return `<img src="${name}-${frame}-${language}.webp" width="${width}" alt="${name}, ${frame}, ${language}">`;
      }),
    );
    return `## ${name}\n\n${images.join("\n")}\n`;
  });
  const intro =
    "# Screens of the web UI\n\nEach screen at desktop and phone width, light and dark, in English and Chinese. " +
    "`make screens` checks and writes them.\n";
  writeFileSync(`${options.shots}/README.md`, [intro, ...sections].join("\n"));
}

const screens = SCREENS.filter(({ name, quick }) =>
  options.only ? new RegExp(options.only).test(name) : quick || !options.quick,
);
if (options.shots) mkdirSync(options.shots, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.OFFING_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
});
const problems = [];
try {
  const signedIn = await browser.newContext({ viewport: WIDE });
  const first = await signedIn.newPage();
  await first.goto(new URL(process.env.OFFING_LOGIN ?? "", base).href);
  const storageState = await signedIn.storageState();
  await signedIn.close();
  for (const language of Object.keys(FRAMES)) {
    const catalog = await readCatalog(language);
    for (const state of [storageState, undefined]) {
      const context = await browser.newContext({
        viewport: WIDE,
        locale: language === "en" ? "en-US" : "zh-CN",
        ...(state && { storageState: state }),
      });
      for (const screen of screens.filter(({ signedOut }) => Boolean(signedOut) === !state)) {
        problems.push(...(await walk(context, screen, language, catalog)));
      }
      await context.close();
    }
  }
  if (options.shots && !options.only) writeIndex(screens);
} catch (error) {
  problems.push(error.message ?? String(error));
} finally {
  await browser.close();
}
for (const problem of problems) console.error(problem);
if (problems.length === 0) console.log(`${screens.length} screens: no fault`);
process.exitCode = problems.length > 0 ? 1 : 0;
