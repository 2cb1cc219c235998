// Fails if the first load of a route exceeds 120 kB, if a chunk that is loaded later exceeds 80 kB, or if code is loaded
// that no list below names. Part of `npm run build`. Sizes are those of scripts, style sheets and
// texts, compressed with brotli.
//
//   node scripts/check-size.mjs
import { existsSync, readFileSync, realpathSync } from "node:fs";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { listLoaded, listViews, listWithEntry, ROUTES } from "./routes.mjs";

const MAX_ROUTE_BYTES = 120_000;
const MAX_CHUNK_BYTES = 80_000;

/** Parts of a view that are loaded after it, and what is loaded when a person opens something. */
export const ON_DEMAND = [
  "src/features/settings/notifications-section.tsx",
  "src/app/command-palette.tsx",
  "src/app/run-list-view.tsx",
  "src/app/run-parts.ts",
  "src/features/cost/cost-view.tsx",
  "src/features/graph-drawing/graph-view.tsx",
  "src/features/graph-state/graph-state-view.tsx",
  "src/features/graph-state/langgraph-state.tsx",
  "src/features/home/first-visit.tsx",
  "src/features/home/composer-notes.tsx",
  "src/features/home/options-panel.tsx",
  "src/features/home/question-list.tsx",
  "src/features/home/recent-runs.tsx",
  "src/features/home/request-parts.ts",
  "src/features/home/tool-policy.ts",
  "src/features/input-requests/graph-interrupts.tsx",
  "src/features/input-requests/pending-input-requests.tsx",
  "src/features/notifications/notification-bell.tsx",
  "src/features/notifications/notification-list.tsx",
  "src/features/report/evidence.tsx",
  "src/features/report/export-menu.tsx",
  "src/features/report/learning-dialog.tsx",
  "src/features/report/report-tab.tsx",
  "src/features/report/report-tools.ts",
  "src/features/report/report-view.tsx",
  "src/features/run/answer-drafts.tsx",
  "src/features/run/follow-up.ts",
  "src/features/run/forked-from.tsx",
  "src/features/run/run-failure.tsx",
  "src/features/run/run-menu.tsx",
  "src/features/session/settings-form.tsx",
  "src/features/settings/appearance-section.tsx",
  "src/features/settings/health-section.tsx",
  "src/features/settings/keys-section.tsx",
  "src/features/settings/shares-section.tsx",
  "src/features/settings/mcp-section.tsx",
  "src/features/settings/models-section.tsx",
  "src/features/run/share-form.tsx",
  "src/features/settings/policies-section.tsx",
  "src/features/settings/retention-section.tsx",
  "src/features/settings/search-section.tsx",
  "src/features/settings/spending-section.tsx",
  "src/features/sources/sources-view.tsx",
  "src/features/timeline/fork-form.tsx",
  "src/features/timeline/timeline.tsx",
  "src/features/tokens/tokens-view.tsx",
  "src/features/training/job-view.tsx",
  "src/features/training/versions-view.tsx",
  "src/shared/texts/problem-texts.ts",
  "src/shared/ui/overlays.tsx",
  "src/shared/upload/upload-list.tsx",
  "src/stories/stories-page.tsx",
  "src/shared/document/document-reader.tsx",
];

/** Return the scripts and style sheets of the keys. */
function listFiles(manifest, keys) {
  return new Set([...keys].flatMap((key) => [manifest[key].file, ...(manifest[key].css ?? [])]));
}

/**
 * Return the size of each route and each later module in bytes, and what is wrong with them. `sizeOf` measures a file.
 * `texts` maps each view to the files of its texts, one per language. A route has those of its largest language.
 */
export function measure(manifest, sizeOf, texts = {}) {
  const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
  const first = listLoaded(manifest, entry);
  const sum = (files) => [...files].reduce((total, file) => total + sizeOf(file), 0);
  const modulesOf = Object.values(ROUTES).flatMap(({ modules }) => modules);
  const routes = Object.entries(ROUTES).map(([route, { modules }]) => {
    const keys = listWithEntry(manifest, modules);
    const views = listViews(modules);
    const languages = new Set(views.flatMap((view) => Object.keys(texts[view] ?? {})));
    const textBytes = [...languages].map((language) => sum(views.flatMap((view) => texts[view]?.[language] ?? [])));
    return { name: route, bytes: sum(listFiles(manifest, keys)) + Math.max(0, ...textBytes) };
  });
  const known = new Set([...modulesOf, ...ON_DEMAND]);
  const lazy = Object.keys(manifest).filter((key) => manifest[key].isDynamicEntry);
  const chunks = Object.keys(manifest)
    .filter((key) => !first.has(key) && manifest[key].file.endsWith(".js"))
    .map((key) => ({ name: key, bytes: sizeOf(manifest[key].file) }));
  const missing = modulesOf.filter((key) => !manifest[key]);
  return {
    routes,
    chunks,
    problems: [
      ...routes
        .filter(({ bytes }) => bytes > MAX_ROUTE_BYTES)
        .map(({ name, bytes }) => `The first load of ${name} is ${kB(bytes)}. The maximum is ${kB(MAX_ROUTE_BYTES)}.`),
      ...chunks
        .filter(({ bytes }) => bytes > MAX_CHUNK_BYTES)
        .map(({ name, bytes }) => `The chunk ${name} is ${kB(bytes)}. The maximum is ${kB(MAX_CHUNK_BYTES)}.`),
      ...lazy
        .filter((key) => !known.has(key))
        .map(
          (key) =>
            `${key} is loaded later. Add it to ROUTES of scripts/routes.mjs or ON_DEMAND of scripts/check-size.mjs.`,
        ),
      ...missing.map((key) => `ROUTES names ${key}, which the build does not load on its own.`),
    ],
  };
}

function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}

function kB(bytes) {
  return `${(bytes / 1000).toFixed(1)} kB`;
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const dist = new URL("../dist/", import.meta.url);
  const path = new URL(".vite/manifest.json", dist);
  if (!existsSync(path)) {
    console.error("There is no build. Run `npm run build`.");
    process.exit(1);
  }
  const sizes = new Map();
  const sizeOf = (file) => {
    if (!sizes.has(file)) sizes.set(file, brotliCompressSync(readFileSync(new URL(file, dist))).length);
    return sizes.get(file);
  };
  const { routes, chunks, problems } = measure(readJson(path), sizeOf, readJson(new URL(".vite/texts.json", dist)));
  for (const { name, bytes } of routes) console.log(`${kB(bytes).padStart(9)} of ${kB(MAX_ROUTE_BYTES)}  ${name}`);
  const largest = chunks.toSorted((a, b) => b.bytes - a.bytes)[0];
  if (largest)
    console.log(`${kB(largest.bytes).padStart(9)} of ${kB(MAX_CHUNK_BYTES)}  largest later chunk, ${largest.name}`);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
