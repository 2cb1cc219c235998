// What each route loads. `first-load.mjs` writes a page for each of them, and `check-size.mjs` measures them.

/**
 * `file` is the page that the server sends for the addresses of the route; `offing.api.web_ui` knows it, too. `modules`
 * are loaded beside the entry before the view shows anything, and `parts` with them, because they are shown right after.
 */
export const ROUTES = {
  "/": {
    file: "index.html",
    modules: ["src/features/home/home-page.tsx"],
    parts: ["src/features/home/recent-runs.tsx"],
  },
  "/runs": { file: "runs.html", modules: ["src/app/runs-page.tsx"], parts: ["src/app/run-list-view.tsx"] },
  "/runs/$runId": {
    file: "run.html",
    modules: ["src/app/run-page.tsx"],
    parts: ["src/app/run-parts.ts", "src/features/timeline/timeline.tsx"],
  },
  "/runs/compare": { file: "compare.html", modules: ["src/features/compare/compare-page.tsx"], parts: [] },
  "/library": { file: "library.html", modules: ["src/features/library/library-page.tsx"], parts: [] },
  "/training": { file: "training.html", modules: ["src/features/training/training-page.tsx"], parts: [] },
  "/settings": { file: "settings.html", modules: ["src/features/settings/settings-page.tsx"], parts: [] },
  "/shared/$token": { file: "shared.html", modules: ["src/features/report/shared-page.tsx"], parts: [] },
  "/sign-in": { file: "sign-in.html", modules: ["src/features/session/sign-in.tsx"], parts: [] },
};

/** Add the keys of the manifest that a module loads at once. */
export function listLoaded(manifest, key, seen = new Set()) {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) listLoaded(manifest, next, seen);
  return seen;
}

/** Return the key of the entry, and the keys of the manifest that some modules load with it. */
export function listWithEntry(manifest, modules) {
  const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
  const keys = listLoaded(manifest, entry);
  for (const module of modules) if (manifest[module]) listLoaded(manifest, module, keys);
  return keys;
}

/** Return the views that have texts of their own among some modules. */
export function listViews(modules) {
  return ["main", ...modules.map((key) => key.replace(/\.tsx?$/, ""))];
}
