// Reports texts of the page that are not translated. Part of `npm run check`.
//
//   node scripts/check-texts.mjs   the exit code is 1 if there are problems, and each is printed
//
// In the code: words that are written inline instead of with `t`, `plural`, `msg` or `Trans`, and texts that are
// translated before the language is known. In the catalogs: missing, unused and broken translations.
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import ts from "typescript";

const WHY = {
  inline: "These words are not translated. Write them with `t`, `plural`, `msg` or `<Trans>`; see docs/languages.md.",
  early: "`t` and `plural` read the language, which is not known while a module is loaded. Use `msg` and `i18n._`.",
};

/** Attributes whose value a person reads or hears. */
const ATTRIBUTES = new Set([
  "aria-label",
  "aria-valuetext",
  "alt",
  "description",
  "label",
  "placeholder",
  "text",
  "title",
]);
const MACROS = new Set(["Trans", "Plural", "Select", "SelectOrdinal"]);
const MACRO_CALLS = new Set(["t", "msg", "plural", "select", "selectOrdinal", "defineMessage"]);
/** Elements whose content is typed or is code, the same in every language. */
const VERBATIM = new Set(["code", "kbd", "pre"]);
/** Properties and attributes whose value nobody reads. */
const SILENT =
  /^(className|kind|keys|queryKey|key|id|role|type|style|d|transform|tone|color|accept|pattern|list|name)$/;
const NAMES = new Set(["Offing", "Markdown", "Word"]);

const isWord = (text) => /\p{L}/u.test(text) && !NAMES.has(text.trim());

/** Return whether a string is prose: several words, or one that begins with a capital or ends a sentence. */
function isProse(text) {
  if (NAMES.has(text)) return false;
  if (/^M\$/.test(text)) return false; // the path of a drawing
  return /\p{L}[\p{P}$]* [\p{P}$]*\p{L}|^\p{Lu}\p{Ll}+[….?!:]*$|^[^.]*\p{Ll}{2}[….?!]$/u.test(text);
}

function tagOf(node) {
  const element = ts.isJsxElement(node) ? node.openingElement : node;
  return ts.isJsxElement(node) || ts.isJsxSelfClosingElement(node) ? element.tagName.getText() : "";
}

/** Return whether the element shows code or a command. */
function isVerbatim(node) {
  if (!ts.isJsxElement(node)) return false;
  return VERBATIM.has(tagOf(node)) || /className="[^"]*\bmono\b/.test(node.openingElement.getText());
}

function isInFunction(node) {
  for (let at = node.parent; at; at = at.parent) if (ts.isFunctionLike(at) || ts.isPropertyDeclaration(at)) return true;
  return false;
}

/** Return whether the value of this literal is never shown: a name, a type, a case, an error of the program. */
function isSilent(node) {
  const { parent } = node;
  if (ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent) || ts.isModuleDeclaration(parent)) return true;
  if (ts.isLiteralTypeNode(parent) || ts.isCaseClause(parent) || ts.isElementAccessExpression(parent)) return true;
  for (let at = node; at.parent; at = at.parent) {
    const up = at.parent;
    if (ts.isBinaryExpression(up) && /^[!=]==$/.test(up.operatorToken.getText())) return true;
    if (ts.isConditionalExpression(up) && up.condition === at) return true;
    if (ts.isPropertyAssignment(up) && (up.name === at || SILENT.test(up.name.getText()))) return true;
    if (ts.isJsxAttribute(up) && SILENT.test(up.name.getText())) return true;
    if (ts.isNewExpression(up)) return /^(Error|URL|RegExp)$/.test(up.expression.getText());
    if (ts.isCallExpression(up) && isLookup(up)) return true;
    if ((ts.isVariableDeclaration(up) || ts.isFunctionDeclaration(up)) && /class/i.test(up.name.getText())) return true;
    if (ts.isFunctionDeclaration(up)) return false;
  }
  return false;
}

/** Return whether a person reads or hears the value of the attribute. A `name` is the label of a component. */
function isReadable(attribute) {
  const name = attribute.name.getText();
  return ATTRIBUTES.has(name) || (name === "name" && /^[A-Z]/.test(attribute.parent.parent.tagName.getText()));
}

/** Return whether a word at this place is shown, whatever it looks like: in an element, or as a label. */
function isShown(node) {
  for (let at = node; at.parent; at = at.parent) {
    const up = at.parent;
    if (ts.isConditionalExpression(up) || ts.isParenthesizedExpression(up)) continue;
    if (ts.isBinaryExpression(up) && /^(&&|\|\||\?\?)$/.test(up.operatorToken.getText())) continue;
    if (ts.isPropertyAssignment(up)) return ATTRIBUTES.has(up.name.getText());
    if (!ts.isJsxExpression(up)) return false;
    return ts.isJsxAttribute(up.parent) ? ATTRIBUTES.has(up.parent.name.getText()) : true;
  }
  return false;
}

/** Return whether the line above says why the text is not translated. */
function isExempt(node, source) {
  const lines = source.slice(0, node.getStart()).split("\n");
  return /\/[/*]+ Not translated: /.test(lines.at(-2) ?? "");
}

/** Calls that take names or selectors. */
function isLookup(call) {
  return /(^|\.)(querySelector(All)?|closest|matches|matchMedia|useMediaQuery|getElementById|includes|get|set|has|startsWith|toLocaleString)$/.test(
    call.expression.getText(),
  );
}

/** Return whether a string is shown without a translation. */
function isInlineText(node) {
  if (isSilent(node)) return false;
  return isProse(node.text) || (isWord(node.text) && isShown(node));
}

/** Untranslated texts in a file, as `{ line, rule, text, why }`. */
export function findInlineTexts(source, name = "file.tsx") {
  const kind = name.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true, kind);
  const problems = [];
  const add = (node, rule) => {
    if (isExempt(node, source)) return;
    const start = ts.isJsxText(node) ? node.end - node.text.trimStart().length : node.getStart();
    const text = node.getText().trim().replace(/\s+/g, " ").slice(0, 60);
    problems.push({ line: file.getLineAndCharacterOfPosition(start).line + 1, rule, text, why: WHY[rule] });
  };
  const visit = (node) => {
    if (ts.isTypeNode(node) || isVerbatim(node) || MACROS.has(tagOf(node))) return;
    if (ts.isTaggedTemplateExpression(node) || ts.isCallExpression(node)) {
      const callee = (node.tag ?? node.expression).getText();
      if (MACRO_CALLS.has(callee)) {
        if (!/^(msg|defineMessage)$/.test(callee) && !isInFunction(node)) add(node, "early");
        return;
      }
    }
    if (ts.isJsxText(node) && isWord(node.text)) add(node, "inline");
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      const attribute = ts.isJsxAttribute(node.parent) ? node.parent : null;
      if (attribute && isReadable(attribute) ? isWord(node.text) : !attribute && isInlineText(node))
        add(node, "inline");
    }
    if (ts.isTemplateExpression(node)) {
      const text = [node.head, ...node.templateSpans.map((span) => span.literal)].map((part) => part.text).join("$");
      if (isProse(text) && !isSilent(node)) add(node, "inline");
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return problems;
}

/** List the source files of a folder that people see. Tests and stories are for developers. */
function listSources(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/\.test\.|\.d\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/\/(testing|stories)\//.test(path));
}

/** Placeholders and elements of a message, without the branches of its plurals: `{name}`, `<0>`. */
function listPlaceholders(message) {
  const names = [...message.matchAll(/\{\s*(\w+)\s*[,}]|<\/?(\d+)\/?>/g)].map((match) => match[1] ?? match[0]);
  return [...new Set(names)].sort().join(" ");
}

/**
 * Compare the messages of the code with a catalog. `used` and `stored` map an id to its message and its translation.
 * Returns one sentence for each problem.
 */
export function compareCatalog(language, used, stored) {
  const problems = [];
  for (const [id, { message }] of Object.entries(used)) {
    const translation = stored[id]?.translation;
    const name = JSON.stringify(message ?? id);
    if (stored[id] === undefined) problems.push(`${language}: ${name} is not in the catalog. Run \`npm run texts\`.`);
    else if (!translation) problems.push(`${language}: ${name} has no translation.`);
    else if (listPlaceholders(message ?? id) !== listPlaceholders(translation)) {
      problems.push(`${language}: ${name} and its translation have different placeholders.`);
    }
  }
  for (const [id, { message }] of Object.entries(stored)) {
    if (used[id] === undefined) {
      problems.push(`${language}: ${JSON.stringify(message ?? id)} is not used. Run \`npm run texts\`.`);
    }
  }
  return problems;
}

/** Problems of all catalogs. */
async function checkCatalogs() {
  const { getConfig } = await import("@lingui/conf");
  const { getCatalogs } = await import("@lingui/cli/api");
  const config = getConfig();
  const problems = [];
  for (const catalog of await getCatalogs(config)) {
    const used = await catalog.collect();
    if (!used) return ["The texts of the code could not be read; the error is printed above."];
    for (const language of config.locales) {
      problems.push(...compareCatalog(language, used, (await catalog.read(language)) ?? {}));
    }
  }
  return problems;
}

// Node passes the path as it was typed, and the URL of the module escaped and with links resolved.
if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const inline = listSources("src").flatMap((path) =>
    findInlineTexts(readFileSync(path, "utf8"), path).map(
      ({ line, text, why }) => `${relative(".", path)}:${line} ${text}\n  ${why}`,
    ),
  );
  const problems = [...inline, ...(await checkCatalogs())];
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
