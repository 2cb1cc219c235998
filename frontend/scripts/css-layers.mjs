// A Vite plugin that puts each style sheet into the cascade layer of its folder, so that a view's styles win over those
// of a primitive whatever order their files are loaded in.
import { relative } from "node:path";

/** The order of the layers: a later one wins. Every file declares it, because any file may be the first to load. */
const ORDER = "@layer reset, tokens, base, primitives, features;";

/** The first folder or file that matches decides. */
const LAYERS = [
  ["src/app/reset.css", "reset"],
  ["src/app/tokens.css", "tokens"],
  ["src/app/base.css", "base"],
  ["src/shared/", "primitives"],
  ["src/", "features"],
];

/** Return the cascade layer of a style sheet. `null` means that it stays outside all layers. */
export function findLayer(path) {
  return LAYERS.find(([prefix]) => path.startsWith(prefix))?.[1] ?? null;
}

/** Wrap the style sheets of `src` in their layers. */
export function cssLayers() {
  let root = "";
  return {
    name: "offing-css-layers",
    enforce: "pre",
    configResolved(config) {
      root = config.root;
    },
    transform(code, id) {
      const file = id.split("?")[0];
      if (!file.endsWith(".css")) return null;
      const layer = findLayer(relative(root, file).replaceAll("\\", "/"));
      return layer === null ? null : { code: `${ORDER}\n@layer ${layer} {\n${code}\n}\n`, map: null };
    },
  };
}
