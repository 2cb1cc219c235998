// The screens that `screens.mjs` opens: one entry for each screen and each state of it that looks different.
//
//   name    the name of its screenshots
//   path    its address; `ids` has the runs and documents of `tests/e2e/sample_runs.py` by their names
//   open    optional: steps to the state after the page is there. `say` translates a text of the catalog into the
//           language of the page
//   quick   true: part of the short walk of `make test`, in which others are left out
//   errors  optional: a pattern of messages in the console that belong to the state

/** Press a button by its name. */
const press = (name) => async (page, say) => {
  await page
    .getByRole("button", { name: say(name), exact: true })
    .first()
    .click();
};

/** The sections of the settings. A test compares them with those of the web UI. */
export const SECTIONS = [
  "models",
  "search",
  "mcp",
  "tool-policies",
  "api-keys",
  "share-links",
  "spending",
  "retention",
  "health",
  "appearance",
  "notifications",
];

export const SCREENS = [
  { name: "home", path: () => "/", quick: true },
  { name: "home-question", path: () => `/?ask=${encodeURIComponent("Who built the third Eddystone tower?")}` },
  { name: "home-options", path: () => "/", open: press("Options") },
  {
    name: "home-several",
    path: () => "/?ask=Who+built+it%3F",
    open: async (page, say) => page.getByLabel(say("Several questions")).check(),
  },
  { name: "account", path: () => "/", open: press("Account"), quick: true },
  {
    name: "notifications",
    path: () => "/",
    open: async (page, say) =>
      page
        .locator('[aria-haspopup="dialog"]')
        .filter({ visible: true })
        .and(page.getByRole("button", { name: new RegExp(`notification|${say("Notifications")}`, "i") }))
        .first()
        .click(),
  },
  {
    name: "command-palette",
    path: () => "/",
    open: async (page) => {
      await page.keyboard.press("ControlOrMeta+k");
      await page.getByRole("combobox").first().waitFor();
    },
  },
  {
    name: "keyboard-shortcuts",
    path: () => "/",
    open: async (page) => {
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor();
    },
  },
  { name: "runs", path: () => "/runs", quick: true },
  { name: "runs-none-found", path: () => "/runs?q=zeppelin" },
  { name: "runs-found", path: () => "/runs?q=lighthouse" },
  { name: "runs-filtered", path: () => "/runs?graph=agentflow", open: press("Filters") },
  { name: "runs-compare", path: (ids) => `/runs/compare?a=${ids.answered}&b=${ids.followed}` },
  { name: "run-report", path: (ids) => `/runs/${ids.answered}?tab=report`, quick: true },
  { name: "run-citation", path: (ids) => `/runs/${ids.answered}?tab=report&cite=%5B1%5D` },
  { name: "run-claims", path: (ids) => `/runs/${ids.answered}?tab=report&part=claims`, quick: true },
  { name: "run-edit", path: (ids) => `/runs/${ids.answered}?tab=report&part=edit` },
  { name: "run-versions", path: (ids) => `/runs/${ids.answered}?tab=report&part=versions` },
  { name: "run-share", path: (ids) => `/runs/${ids.answered}?tab=report`, open: press("Share") },
  { name: "run-graph", path: (ids) => `/runs/${ids.answered}?tab=graph`, quick: true },
  { name: "run-cost", path: (ids) => `/runs/${ids.answered}?tab=cost` },
  { name: "run-search", path: (ids) => `/runs/${ids.answered}?tab=timeline&q=tower` },
  { name: "run-timeline", path: (ids) => `/runs/${ids.answered}?tab=timeline`, quick: true },
  { name: "run-step", path: (ids) => `/runs/${ids.answered}?tab=timeline&step=3` },
  { name: "run-sources", path: (ids) => `/runs/${ids.answered}?tab=sources` },
  { name: "run-followed", path: (ids) => `/runs/${ids.followed}?tab=report` },
  { name: "run-state-iterresearch", path: (ids) => `/runs/${ids.iterresearch}?tab=state` },
  { name: "run-state-memact", path: (ids) => `/runs/${ids.memact}?tab=state` },
  { name: "run-state-hiper", path: (ids) => `/runs/${ids.hiper}?tab=state` },
  { name: "run-waiting", path: (ids) => `/runs/${ids.waiting}`, quick: true },
  { name: "run-failed", path: (ids) => `/runs/${ids.failed}`, quick: true },
  { name: "run-unknown", path: () => "/runs/019aa6f0-0000-7000-8000-000000000000", errors: /404/ },
  { name: "library", path: () => "/library", quick: true },
  { name: "library-collection", path: () => "/library?collection=lighthouses" },
  { name: "library-search", path: () => "/library?q=lighthouse" },
  ...SECTIONS.map((section) => ({
    name: `settings-${section}`,
    path: () => `/settings/${section}`,
    quick: section === "models",
  })),
  { name: "shared-report", path: (ids) => ids.shared, quick: true },
  { name: "training", path: () => "/training", quick: true },
  { name: "training-job", path: (ids) => `/training?job=${ids.job}` },
  { name: "training-policy", path: () => "/training?policy=planner" },
  { name: "not-found", path: () => "/nothing" },
  { name: "sign-in", path: () => "/sign-in?link=used", signedOut: true, quick: true, errors: /401/ },
];
