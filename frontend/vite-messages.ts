/** Vite plugins of the translated texts. */

import { createHash } from "node:crypto";
import { basename, dirname, join, relative } from "node:path";
import { type NodePath, type PluginObj, transformAsync, types } from "@babel/core";
import macros from "@lingui/babel-plugin-lingui-macro";
import {
  createCompilationErrorMessage,
  createCompiledCatalog,
  createMissingErrorMessage,
  getCatalogs,
} from "@lingui/cli/api";
import { getConfig } from "@lingui/conf";
import { lingui } from "@lingui/vite-plugin";
import type { Plugin } from "vite";
import { type ModuleGraph, splitMessages } from "./split-messages.ts";

/** The module that fetches texts. Only `src/shared/language/view-texts.ts` imports it. */
const TEXTS_MODULE = "virtual:view-texts";
/** Stands for the names of the files until all modules are known. */
const FILES_PLACEHOLDER = "__OFFING_TEXT_FILES__";
/** The name of the view with the texts that the page needs before it shows any other. */
const MAIN_VIEW = "main";
/** A part of a view with fewer texts has them in the file of its view, since a request costs more than they do. */
const MIN_TEXTS = 12;
/** Lingui writes this comment before each text. */
const MESSAGE_ID = /\/\*\s*i18n\s*\*\/\s*\{\s*id:\s*("(?:[^"\\]|\\.)*")/g;

/** The texts of one language by their ids, as the page reads them. */
type CompiledTexts = Record<string, unknown>;

/** Return the ids of the texts in code without macros. */
export function findMessageIds(code: string): string[] {
  return [...code.matchAll(MESSAGE_ID)].map((match) => JSON.parse(match[1] ?? ""));
}

/** Replace the macros of Lingui (`t`, `plural`, `Trans`). With `loaders`, each lazy import also loads its texts. */
export async function replaceMacros(code: string, path: string, loaders: PluginObj[]) {
  return await transformAsync(code, {
    filename: path,
    babelrc: false,
    configFile: false,
    sourceMaps: true,
    parserOpts: { plugins: path.endsWith("x") ? ["typescript", "jsx"] : ["typescript"] },
    plugins: [macros, ...loaders.map((loader) => () => loader)],
  });
}

/** Return the name of the view whose code a module is: its path in the project without its suffix. */
function viewName(root: string, path: string): string {
  return relative(root, path)
    .replaceAll("\\", "/")
    .replace(/\.tsx?$/, "");
}

/** A Babel plugin that writes `loadView(NAME, () => import(PATH))` for each `import(PATH)` of a file of `src`. */
function viewLoaders(root: string, importer: string): PluginObj {
  return {
    visitor: {
      CallExpression(call: NodePath<types.CallExpression>) {
        const [target] = call.node.arguments;
        if (call.node.callee.type !== "Import" || target?.type !== "StringLiteral") return;
        const path = target.value.startsWith("@/")
          ? join(root, "src", target.value.slice(2))
          : join(dirname(importer), target.value);
        const program = call.scope.getProgramParent();
        const loader = program.generateUidIdentifier("loadView");
        const load = types.arrowFunctionExpression([], types.cloneNode(call.node));
        call.replaceWith(types.callExpression(loader, [types.stringLiteral(viewName(root, path)), load]));
        call.skip();
        const from = types.stringLiteral("@/shared/language/view-texts");
        const names = [types.importSpecifier(loader, types.identifier("loadView"))];
        (program.path as NodePath<types.Program>).unshiftContainer("body", types.importDeclaration(names, from));
      },
    },
  };
}

/**
 * Return the texts of each language. Fails if a translation is missing or invalid. `configPath` is the file of another
 * set of languages; without it, the languages are those of `lingui.config.ts`.
 */
export async function compileTexts(configPath?: string): Promise<Map<string, CompiledTexts>> {
  const config = getConfig(configPath ? { configPath } : {});
  const [catalog] = await getCatalogs(config);
  if (!catalog) throw new Error("lingui.config.ts names no catalog.");
  const options = { fallbackLocales: config.fallbackLocales ?? {}, sourceLocale: config.sourceLocale ?? "en" };
  const texts = new Map<string, CompiledTexts>();
  for (const locale of config.locales) {
    const { messages, missing } = await catalog.getTranslations(locale, options);
    if (missing.length > 0) throw new Error(createMissingErrorMessage(locale, missing, "build"));
    const { source, errors } = createCompiledCatalog(locale, messages, { namespace: "json" });
    if (errors.length > 0) throw new Error(createCompilationErrorMessage(locale, errors));
    texts.set(locale, JSON.parse(source).messages);
  }
  return texts;
}

/** The files of the texts. */
interface TextFiles {
  /** The name of each view's files without the language. A view without texts of its own has none. */
  names: Record<string, string>;
  /** The path of each view's file in each language. */
  paths: Record<string, Record<string, string>>;
  contents: Map<string, string>;
}

/** Write the texts of each view in each language. Fails if a language lacks one of them. */
export function writeTextFiles(
  parts: ReadonlyMap<string, ReadonlySet<string>>,
  texts: ReadonlyMap<string, CompiledTexts>,
): TextFiles {
  const written: TextFiles = { names: {}, paths: {}, contents: new Map() };
  for (const [view, ids] of parts) {
    if (ids.size === 0) continue;
    const contents = [...texts].map(([language, all]) => [language, selectTexts(language, all, ids)] as const);
    const hash = createHash("sha256").update(JSON.stringify(contents)).digest("base64url").slice(0, 8);
    const name = `${basename(view)}-${hash}`;
    written.names[view] = name;
    const paths = Object.fromEntries(contents.map(([language]) => [language, `assets/${name}.${language}.json`]));
    written.paths[view] = paths;
    for (const [language, content] of contents) written.contents.set(paths[language] ?? "", content);
  }
  return written;
}

function selectTexts(language: string, all: CompiledTexts, ids: ReadonlySet<string>): string {
  const missing = [...ids].filter((id) => !Object.hasOwn(all, id));
  if (missing.length > 0) {
    throw new Error(`The catalog ${language} lacks ${missing.length} texts of the code. Run \`npm run texts\`.`);
  }
  return JSON.stringify(Object.fromEntries([...ids].sort().map((id) => [id, all[id]])));
}

/** During development and in tests there is one view, which has all texts. */
function wholeCatalogs(locales: readonly string[]): string {
  const imports = locales.map((locale) => `${JSON.stringify(locale)}: () => import("/src/locales/${locale}.po")`);
  return [
    `const CATALOGS = {${imports.join(", ")}};`,
    "export const fetchTexts = async (view, language) =>",
    `  view === "${MAIN_VIEW}" ? (await CATALOGS[language]()).messages : {};`,
  ].join("\n");
}

const FETCH_FILES = `
import { takeEarlyResponse } from "@/shared/api/early-responses";
const FILES = ${FILES_PLACEHOLDER};
export async function fetchTexts(view, language) {
  const file = FILES[view];
  if (!file) return {};
  const address = import.meta.env.BASE_URL + "assets/" + file + "." + language + ".json";
  const response = await (takeEarlyResponse(address) ?? fetch(address));
  if (!response.ok) throw new Error("The texts of a view could not be loaded: " + response.status);
  return await response.json();
}`;

/**
 * Translate the texts of the code. In a build, each lazily imported module loads only its own texts, in the language of
 * the page, beside its code; the catalogs stay one file per language. A build fails if a translation is missing or
 * invalid.
 */
export function messages(): Plugin[] {
  const strict = { failOnMissing: true, failOnCompileError: true };
  return [viewTexts(), ...lingui(strict)];
}

function viewTexts(): Plugin {
  const found = new Map<string, string[]>();
  const loaders = new Set<string>();
  let root = "";
  let splits = false;
  let table = "{}";
  return {
    name: "offing-view-texts",
    enforce: "pre",
    configResolved(config) {
      root = config.root;
      splits = config.command === "build";
    },
    resolveId: (id) => (id === TEXTS_MODULE ? `\0${TEXTS_MODULE}` : null),
    load(id) {
      if (id !== `\0${TEXTS_MODULE}`) return null;
      return splits ? FETCH_FILES : wholeCatalogs(getConfig().locales);
    },
    transform: {
      filter: { id: /\/src\/.*\.tsx?$/, code: /@lingui\/(core|react)\/macro|\bimport\(/ },
      async handler(code, id) {
        const result = await replaceMacros(code, id, splits ? [viewLoaders(root, id)] : []);
        if (!result?.code) return null;
        found.set(id, findMessageIds(result.code));
        for (const [, name] of result.code.matchAll(/_loadView\d*\("([^"]+)"/g)) if (name) loaders.add(name);
        return { code: result.code, map: result.map ?? null };
      },
    },
    async renderStart() {
      if (!splits) return;
      const infos = [...this.getModuleIds()].flatMap((id) => this.getModuleInfo(id) ?? []);
      const nameOf = (id: string) => (this.getModuleInfo(id)?.isEntry ? MAIN_VIEW : viewName(root, id));
      const graph: ModuleGraph = {
        entry: MAIN_VIEW,
        imports: new Map(infos.map(({ id, importedIds }) => [nameOf(id), importedIds.map(nameOf)])),
        lazyImports: new Map(infos.map((info) => [nameOf(info.id), info.dynamicallyImportedIds.map(nameOf)])),
        texts: new Map([...found].map(([id, ids]) => [nameOf(id), ids])),
      };
      const parts = splitMessages(graph, MIN_TEXTS);
      for (const [view, ids] of parts) {
        if (view !== MAIN_VIEW && ids.size > 0 && !loaders.has(view))
          throw new Error(`${view} is loaded without texts.`);
      }
      const { names, paths, contents } = writeTextFiles(parts, await compileTexts());
      table = JSON.stringify(names);
      for (const [path, content] of contents) this.emitFile({ type: "asset", fileName: path, source: content });
      // `scripts/first-load.mjs` and `scripts/check-size.mjs` read it.
      this.emitFile({ type: "asset", fileName: ".vite/texts.json", source: JSON.stringify(paths) });
    },
    renderChunk(code) {
      return code.includes(FILES_PLACEHOLDER)
        ? { code: code.replace(FILES_PLACEHOLDER, () => table), map: null }
        : null;
    },
  };
}
