// Opens every screen of an installation whose names, documents, steps, reports and settings are hostile texts, wide and
// on a phone. On none may a script of a text run, a request leave the server, the console show an error, a text become
// an element or an unsafe link, leave its container, take over the title, or turn the text after it around.
//
//   OFFING_URL       http://127.0.0.1:8400 by default
//   OFFING_LOGIN     a one-time link of an operator
//   OFFING_IDS       what `tests/api/hostile_stack.py` has made, as JSON
//   OFFING_EXPORTS   a folder with HTML files to open
//   OFFING_SHOTS     a folder for screenshots; none when empty
//   OFFING_ONLY      a regular expression; only screens whose name matches are opened
//   OFFING_CHROMIUM  the browser; /usr/bin/chromium by default
import { readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { base, env } from "./browser.mjs";
import { SECTIONS } from "./screen-list.mjs";

const ids = JSON.parse(env("OFFING_IDS", "{}"));
const origin = new URL(base).origin;
const shots = env("OFFING_SHOTS", "");
const WIDE = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
/** Number of screens that are open at once. Most of the time a page waits. */
const MAX_PAGES = 4;
/** Maximum number of steps and other rows that are opened on a screen. */
const MAX_OPENED = 12;

const run = (id, search) => `/runs/${id}?${search}`;
const press = (name) => (page) => page.getByRole("button", { name, exact: true }).first().click();

/** Open the stored text of the first document of a list, and wait until it is there. */
const readDocument = (button) => async (page) => {
  await page.locator(`main ${button}`).first().click();
  await page.locator("dialog[open] section[tabindex='0'] span span, dialog[open] mark").first().waitFor();
};

/** Open rows, from the last one, so that what opens does not move those that follow. */
const expand = async (page) => {
  const closed = page.locator("main [aria-expanded=false]:not([aria-haspopup], :disabled)");
  for (let at = Math.min(MAX_OPENED, await closed.count()) - 1; at >= 0; at -= 1) await closed.nth(at).click();
};

const openPalette = async (page) => {
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("dialog").getByRole("combobox").fill("script");
};

const openNotifications = async (page) =>
  page
    .locator('[aria-haspopup="dialog"]')
    .filter({ visible: true })
    .and(page.getByRole("button", { name: /notification/i }))
    .first()
    .click();

const SCREENS = [
  { name: "home", path: "/" },
  { name: "home-options", path: "/", open: press("Options") },
  { name: "home-asked", path: `/?ask=${encodeURIComponent("<img src=x onerror=window.attacked=1>\u202e")}` },
  { name: "notifications", path: "/", open: openNotifications },
  { name: "palette", path: "/", open: openPalette },
  { name: "runs", path: "/runs" },
  { name: "runs-filters", path: "/runs?state=ended", open: press("Filters") },
  { name: "runs-search", path: "/runs?q=script" },
  { name: "compare", path: `/runs/compare?a=${ids.ended}&b=${ids.active}` },
  { name: "timeline", path: run(ids.ended, "tab=timeline"), open: expand },
  { name: "timeline-search", path: run(ids.ended, "tab=timeline&q=script") },
  { name: "step", path: run(ids.ended, "tab=timeline&step=5") },
  { name: "graph", path: run(ids.ended, "tab=graph") },
  { name: "state", path: run(ids.ended, "tab=state") },
  { name: "sources", path: run(ids.ended, "tab=sources") },
  { name: "source-reader", path: run(ids.ended, "tab=sources"), open: readDocument(".cited-open") },
  { name: "cost", path: run(ids.ended, "tab=cost") },
  { name: "tokens", path: run(ids.ended, "tab=tokens") },
  { name: "report", path: run(ids.ended, "tab=report&version=1") },
  { name: "citation", path: run(ids.ended, "tab=report&version=1&cite=%5B1%2C2%5D") },
  { name: "report-edited", path: run(ids.ended, "tab=report") },
  { name: "claims", path: run(ids.ended, "tab=report&part=claims&version=1") },
  { name: "edit", path: run(ids.ended, "tab=report&part=edit") },
  { name: "versions", path: run(ids.ended, "tab=report&part=versions") },
  { name: "share", path: run(ids.ended, "tab=report"), open: press("Share") },
  { name: "active", path: run(ids.active, "tab=timeline") },
  { name: "active-report", path: run(ids.active, "tab=report") },
  { name: "waiting", path: run(ids.waiting, "tab=timeline"), open: expand },
  { name: "library", path: "/library" },
  { name: "library-search", path: "/library?q=tide" },
  { name: "document", path: `/library?source=${ids.source}` },
  { name: "document-reader", path: `/library?source=${ids.source}`, open: readDocument(".source-open") },
  { name: "collection", path: `/library?collection=${encodeURIComponent(ids.collection)}` },
  ...SECTIONS.map((name) => ({
    name: `settings-${name}`,
    path: `/settings/${name}`,
    open: expand,
  })),
  { name: "prompt-library", path: `/training?policy=${ids.policy}`, open: expand },
  { name: "shared", path: ids.shared, title: /^.{1,200}$/su },
];

/** Record what a text could cause in a page before anything of it runs. */
function watch(page, name, found) {
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !/^(blob|file):/.test(url)) found.push(`${name}: a request of ${url}`);
  });
  page.on("pageerror", (error) => found.push(`${name}: error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") found.push(`${name}: console: ${message.text()} ${message.location().url}`);
  });
  page.on("dialog", (dialog) => {
    found.push(`${name}: dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("popup", (popup) => found.push(`${name}: opened ${popup.url()}`));
}

async function settle(page) {
  await page.locator("main, dialog[open]").first().waitFor();
  await page.waitForFunction(() => !document.querySelector("[data-loading]"));
  await page.evaluate(
    () =>
      new Promise((resolve) => {
        let timer = setTimeout(resolve, 150);
        const observer = new MutationObserver(() => {
          clearTimeout(timer);
          timer = setTimeout(resolve, 150);
        });
        observer.observe(document.body, { childList: true, subtree: true });
        setTimeout(resolve, 2_000);
      }),
  );
}

/** Return what is wrong with the document as it is now. Runs in the page. */
function findFaults() {
  const faults = [];
  const brief = (element) => element.outerHTML.slice(0, 200);
  if (globalThis.attacked !== undefined) faults.push("a script ran");
  for (const one of globalThis.violations ?? []) faults.push(`content security policy: ${one}`);
  const root = document.documentElement;
  const over = root.scrollWidth - root.clientWidth;
  if (over > 0) faults.push(`${over} px wider than the screen`);
  if (Object.prototype.polluted !== undefined) faults.push("a prototype was changed");

  const foreign = "iframe, object, embed, base, video, audio, portal, marquee, math, foreignObject, animate, set";
  for (const element of document.querySelectorAll(`${foreign}, meta[http-equiv=refresh], body style, body link`)) {
    faults.push(`a text became an element: ${brief(element)}`);
  }
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name)) faults.push(`a text became a handler: ${brief(element)}`);
      if (/^(src|href|xlink:href|action|formaction|poster|data|ping)$/i.test(name)) {
        const { protocol, origin: target } = new URL(value, location.href);
        const isOwn = target === location.origin || protocol === "blob:";
        if (!isOwn && element.tagName !== "A") faults.push(`an address of another origin: ${brief(element)}`);
        if (!isOwn && !/^(https?|mailto):$/.test(protocol)) faults.push(`an unsafe link: ${brief(element)}`);
        if (!isOwn && !element.relList.contains("noopener")) faults.push(`a link without noopener: ${brief(element)}`);
      }
    }
  }

  const clips = (element) => /(auto|scroll|hidden|clip)/.test(getComputedStyle(element).overflowX);
  const range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) if (walker.currentNode.data.trim()) texts.push(walker.currentNode);
  const edge = (element) => (element === document.body ? root.clientWidth : element.getBoundingClientRect().right);
  /** What is cut with an ellipsis, scrolls by itself, or is read by a screen reader alone has room for any text. */
  const hasRoom = (container, parent) => {
    const { textOverflow, webkitLineClamp } = getComputedStyle(container);
    const isScroller = container.matches("pre, table, textarea, [role=tablist], [tabindex='0'], .legend");
    const isForReaders = parent.closest(".visually-hidden, .skip, option") !== null;
    return isScroller || isForReaders || textOverflow === "ellipsis" || webkitLineClamp !== "none";
  };
  /** A letter with very many marks cannot be broken, so what contains it cuts it. */
  const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
  const isBreakable = (text) =>
    !/[\p{M}\u200d]{8}|(\u{1f468}\u200d){8}/u.test(text) ||
    ![...segmenter.segment(text)].some(({ segment }) => segment.length > 20);
  const isolates = (element) => {
    const { unicodeBidi, display } = getComputedStyle(element);
    return /isolate|plaintext/.test(unicodeBidi) || !/^(inline|contents)$/.test(display);
  };
  const isolating = (node) => {
    let element = node.parentElement;
    while (element !== document.body && !isolates(element)) element = element.parentElement;
    return element;
  };
  for (const [at, node] of texts.entries()) {
    const parent = node.parentElement;
    if (!parent.checkVisibility({ visibilityProperty: true })) continue;
    range.selectNodeContents(node);
    const { left, right } = range.getBoundingClientRect();
    let container = parent;
    while (container !== document.body && !clips(container)) container = container.parentElement;
    if (isBreakable(node.data) && !hasRoom(container, parent) && (right > edge(container) + 1 || left < -1)) {
      const place =
        container === document.body ? "the screen" : `<${container.tagName} class="${container.className}">`;
      faults.push(`a text leaves ${place} (${Math.round(left)} to ${Math.round(right)}): ${brief(parent)}`);
    }
    if (/[\u202a-\u202e\u2066-\u2069]/.test(node.data)) {
      const block = isolating(node);
      const next = texts.slice(at + 1).find((one) => /[\p{L}\p{N}]/u.test(one.data));
      if (next && block.contains(next) && isolating(next) === block) {
        faults.push(`a text can turn around the one after it, “${next.data.trim().slice(0, 40)}”: ${brief(block)}`);
      }
    }
  }
  return faults;
}

/** Return what is wrong with a title: one that a text wrote as a whole, or whose marks turn the words around it. */
function findTitleFaults(title, pattern) {
  const faults = [];
  if (!pattern.test(title)) faults.push(`the title is ${JSON.stringify(title.slice(0, 80))}`);
  if (/[\u202a-\u202e\u2066-\u2069\n\r]/.test(title)) faults.push("the title has marks of direction or line ends");
  return faults;
}

async function walk(context, screen, found) {
  const page = await context.newPage();
  const faults = [];
  watch(page, screen.name, found);
  page.setDefaultTimeout(30_000);
  try {
    await page.setViewportSize(WIDE);
    await page.goto(new URL(screen.path, base).href);
    await settle(page);
    await screen.open?.(page);
    await settle(page);
    for (const [name, size] of Object.entries({ wide: WIDE, phone: PHONE })) {
      await page.setViewportSize(size);
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      faults.push(...(await page.evaluate(findFaults)).map((fault) => `${name}: ${fault}`));
      if (shots) await page.screenshot({ path: `${shots}/${screen.name}-${name}.png` });
    }
    const words = /^(Offing$|(Answered|Ended|Failed|Running|Waiting for you|Queued|Partial[^:]*|[A-Z][a-z ]+): )/;
    faults.push(...findTitleFaults(await page.title(), screen.title ?? words));
    if (new URL(page.url()).origin !== origin) faults.push(`the page went to ${page.url()}`);
  } catch (error) {
    faults.push(error.message ?? String(error));
  } finally {
    await page.close();
  }
  found.push(...[...new Set(faults)].map((fault) => `${screen.name}: ${fault}`));
}

/** Open an exported file as a person who was sent it does. */
async function openExport(context, file, found) {
  const page = await context.newPage();
  watch(page, file, found);
  await page.setViewportSize(PHONE);
  await page.goto(pathToFileURL(`${env("OFFING_EXPORTS")}/${file}`).href);
  const faults = await page.evaluate(() => {
    const active = document.querySelectorAll(
      "script, iframe, object, embed, form, img:not([src^='data:image/']), base",
    );
    const links = [...document.links].filter(({ protocol, hash }) => !/^(https?|mailto):$/.test(protocol) && !hash);
    const root = document.documentElement;
    return [
      ...(globalThis.attacked === undefined ? [] : ["a script ran"]),
      ...(globalThis.violations ?? []).map((one) => `content security policy: ${one}`),
      ...[...active, ...links].map((element) => `active: ${element.outerHTML.slice(0, 160)}`),
      ...(root.scrollWidth > root.clientWidth ? [`${root.scrollWidth - root.clientWidth} px too wide`] : []),
    ];
  });
  if (shots) await page.screenshot({ path: `${shots}/${file}.png` });
  await page.close();
  found.push(...faults.map((fault) => `${file}: ${fault}`));
}

const browser = await chromium.launch({
  executablePath: env("OFFING_CHROMIUM", "/usr/bin/chromium"),
  args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
});
const found = [];
const only = new RegExp(env("OFFING_ONLY", ""));
const screens = SCREENS.filter(({ name }) => only.test(name));
try {
  const context = await browser.newContext({ viewport: WIDE, reducedMotion: "reduce", locale: "en-US" });
  await context.addInitScript(() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => {
      globalThis.violations.push(`${event.effectiveDirective} ${event.blockedURI}`);
    });
  });
  const first = await context.newPage();
  await first.goto(new URL(env("OFFING_LOGIN"), base).href);
  await first.close();
  const left = [...screens];
  const walkNext = async () => {
    for (let screen = left.shift(); screen; screen = left.shift()) await walk(context, screen, found);
  };
  await Promise.all(Array.from({ length: MAX_PAGES }, walkNext));
  const exports = env("OFFING_EXPORTS", "");
  for (const file of exports ? readdirSync(exports).filter((name) => name.endsWith(".html")) : []) {
    await openExport(context, file, found);
  }
} catch (error) {
  found.push(error.message ?? String(error));
} finally {
  await browser.close();
}
for (const fault of new Set(found)) console.error(fault);
if (found.length === 0) console.log(`${screens.length} screens are inert`);
process.exitCode = found.length > 0 ? 1 : 0;
