// A Vite plugin that writes the page of each route. Beside the entry, a page names the files that its view needs, so
// that the browser fetches all of them at once instead of one wave after the other. It contains `start.js`, which
// fetches the texts and the first data: the requests of a file would wait for the file, and behind those for the code.
// A browser has six connections to a server, and the small files of a view would keep them busy. So `start.js` names
// these files after it has sent its requests.
import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { minifySync } from "vite";
import { listViews, listWithEntry, ROUTES } from "./routes.mjs";

/**
 * Return the page of a route. `html` is that of the entry, `start` the code that runs first, `entry` are
 * the scripts of the entry, and `scripts` and `styles` the files of the view. `bundle` is the style sheet that contains all of `styles`. `texts` has for each language
 * the `file` with the texts of the view, and the `parts` that its code asks for.
 */
export function writePage(html, { start, entry, scripts, styles, bundle, texts }) {
  const write = JSON.stringify;
  const known = (file) => html.includes(`src="/${file}"`) || html.includes(`href="/${file}"`);
  const links = [
    `<link rel="stylesheet" crossorigin href="/${bundle}">`,
    ...entry.filter((file) => !known(file)).map((file) => `<link rel="modulepreload" crossorigin href="/${file}">`),
    // The browser does not fetch them. They tell the code that loads a view that its style sheets are there.
    ...styles.map((file) => `<link rel="stylesheet" disabled href="/${file}">`),
  ];
  return html
    .replace(
      '<script src="/start.js">',
      () => `<script data-texts='${write(texts)}' data-scripts='${write(scripts.map((file) => `/${file}`))}'>${start}`,
    )
    .replace(/^ *<link rel="stylesheet".*\n/gm, "")
    .replace("  </head>", () => `${links.map((link) => `    ${link}\n`).join("")}  </head>`);
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
      const start = minifySync("start.js", read("start.js")).code.trim();
      rmSync(join(folder, "start.js"));
      const html = read("index.html");
      const first = new Set(listWithEntry(manifest, []));
      const store = (name, content) => {
        const hash = createHash("sha256").update(content).digest("base64url").slice(0, 8);
        const file = `assets/${name.replace(".", `-${hash}.`)}`;
        writeFileSync(join(folder, file), content);
        return file;
      };
      for (const { file, modules, parts } of Object.values(ROUTES)) {
        const name = file.replace(".html", "-first");
        const all = [...modules, ...parts];
        const keys = [...listWithEntry(manifest, all)];
        const styles = [...new Set(keys.flatMap((key) => manifest[key].css ?? []))];
        const joinTexts = (language) => {
          const parts = listViews(all).flatMap((view) => texts[view]?.[language] ?? []);
          const joined = Object.fromEntries(parts.map((path) => [`/${path}`, JSON.parse(read(path))]));
          return { file: `/${store(`${name}.${language}.json`, JSON.stringify(joined))}`, parts: Object.keys(joined) };
        };
        const page = writePage(html, {
          start,
          entry: keys.filter((key) => first.has(key)).map((key) => manifest[key].file),
          scripts: keys.filter((key) => !first.has(key)).map((key) => manifest[key].file),
          styles,
          bundle: store(`${name}.css`, styles.map(read).join("\n")),
          texts: Object.fromEntries(Object.keys(texts.main).map((language) => [language, joinTexts(language)])),
        });
        writeFileSync(join(folder, file), page);
      }
    },
  };
}
