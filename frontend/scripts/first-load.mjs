// A Vite plugin that writes the page of each route. Beside the entry, a page names the files that its view needs, so
// that the browser fetches all of them at once instead of one wave after the other, and the texts, which `start.js`
// fetches with the first data.
import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listViews, listWithEntry, ROUTES } from "./routes.mjs";

/** Return the page of a route. `html` is that of the entry, and `start` the address of the script that runs first. */
export function writePage(html, start, manifest, texts, modules) {
  const keys = [...listWithEntry(manifest, modules)];
  const scripts = keys.map((key) => manifest[key].file);
  const styles = keys.flatMap((key) => manifest[key].css ?? []);
  const links = [
    ...scripts.map((file) => `<link rel="modulepreload" crossorigin href="/${file}">`),
    ...styles.map((file) => `<link rel="stylesheet" crossorigin href="/${file}">`),
  ].filter((link) => !html.includes(link) && !html.includes(`src=${link.split("href=")[1]}`));
  const files = {};
  for (const view of listViews(modules))
    for (const [language, file] of Object.entries(texts[view] ?? {}))
      files[language] = [...(files[language] ?? []), `/${file}`];
  return html
    .replace('src="/start.js"', `src="${start}" data-texts='${JSON.stringify(files)}'`)
    .replace("  </head>", `${links.map((link) => `    ${link}\n`).join("")}  </head>`);
}

/** Write the pages of a build when its files are written. */
export function firstLoads() {
  let folder = "";
  return {
    name: "offing-first-loads",
    apply: "build",
    configResolved(config) {
      folder = join(config.root, config.build.outDir);
    },
    writeBundle() {
      const read = (name) => readFileSync(join(folder, name), "utf8");
      const [manifest, texts] = [".vite/manifest.json", ".vite/texts.json"].map((name) => JSON.parse(read(name)));
      const script = read("start.js");
      const start = `assets/start-${createHash("sha256").update(script).digest("base64url").slice(0, 8)}.js`;
      // A name with a hash is never fetched again.
      writeFileSync(join(folder, start), script);
      rmSync(join(folder, "start.js"));
      const html = read("index.html");
      for (const { file, modules, parts } of Object.values(ROUTES))
        writeFileSync(join(folder, file), writePage(html, `/${start}`, manifest, texts, [...modules, ...parts]));
    },
  };
}
