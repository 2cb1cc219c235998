// Refuses code that drops an error: a query whose failure nobody looks at reads as an empty answer. Part of `npm run check`.
//
//   node scripts/check-errors.mjs [FOLDER]   src by default; exit code 1 names each place
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import ts from "typescript";

const HOOKS = new Set([
  "useQuery",
  "useInfiniteQuery",
  "useSuspenseQuery",
  "useQueries",
  "useMutation",
  "useCreateRun",
]);
const LOOKED_AT = new Set(["error", "isError", "isLoadingError"]);
/** Promises that never fail, or whose failure the callee shows. */
const SAFE = new Set(["invalidateQueries", "forgetStanding"]);

const RULES = {
  held: "Hold the whole result in a variable: what is taken out of it at once has lost its error.",
  looked: "Nobody looks at this one's error. Show it with `Loaded`, `Failure` or `ProblemNote`, or read `.error`.",
  otherwise: "`??` and `||` over a query's data show a failure as an empty answer. Show the query with `Loaded`.",
  caught: "This handler drops the error. Show it, or say in a comment inside a catch block why it may be dropped.",
  voided: "`void` drops a failure of this promise. Await it where the error is shown.",
};

/** Files of a folder with code that ships. */
function sources(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/\.test\.|\.d\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.includes("/testing/"));
}

function calledName(call) {
  const { expression } = call;
  if (ts.isIdentifier(expression)) return expression.text;
  return ts.isPropertyAccessExpression(expression) ? expression.name.text : "";
}

function enclosingFunction(node) {
  let at = node;
  while (at.parent && !ts.isFunctionLike(at)) at = at.parent;
  return at;
}

/** Whether the result with this name is given on whole, or its error is read, anywhere in the function. */
function isLookedAt(scope, name, declaration) {
  let found = false;
  const visit = (node) => {
    if (found || node === declaration) return;
    if (ts.isIdentifier(node) && node.text === name) found = givesOn(node) || found;
    ts.forEachChild(node, visit);
  };
  visit(scope);
  return found;
}

function givesOn(node) {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) {
    return parent.expression === node && LOOKED_AT.has(parent.name.text);
  }
  if (ts.isCallExpression(parent)) return parent.arguments.includes(node);
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  if (ts.isConditionalExpression(parent)) return parent.condition !== node;
  return ts.isJsxExpression(parent) || ts.isShorthandPropertyAssignment(parent) || ts.isReturnStatement(parent);
}

/** `query.data`, `query.data?.items`, `query.data?.[0]`: an access chain that goes through `data`. */
function isDataOf(node, names) {
  let at = node;
  let through = false;
  while (ts.isPropertyAccessExpression(at) || ts.isElementAccessExpression(at) || ts.isCallExpression(at)) {
    if (ts.isPropertyAccessExpression(at) && at.name.text === "data") through = true;
    at = at.expression;
  }
  return through && ts.isIdentifier(at) && names.has(at.text);
}

/** A handler of a promise's failure that looks at nothing: it is empty, or its value is a constant. */
function dropsError(handler) {
  if (!handler || !(ts.isArrowFunction(handler) || ts.isFunctionExpression(handler))) return false;
  return ts.isBlock(handler.body) ? doesNothing(handler.body) : isConstant(handler.body);
}

/** Whether a block is empty, or only leaves with a constant. */
function doesNothing(block) {
  const [first, second] = block.statements;
  if (!first) return true;
  if (second) return false;
  if (ts.isReturnStatement(first)) return !first.expression || isConstant(first.expression);
  return ts.isBreakStatement(first) || ts.isContinueStatement(first);
}

const KEYWORDS = new Set([ts.SyntaxKind.NullKeyword, ts.SyntaxKind.FalseKeyword, ts.SyntaxKind.TrueKeyword]);

/** A literal, also of an array or object, or a name in capitals. */
function isConstant(value) {
  if (ts.isParenthesizedExpression(value) || ts.isAsExpression(value) || ts.isSatisfiesExpression(value)) {
    return isConstant(value.expression);
  }
  if (ts.isIdentifier(value)) return value.text === "undefined" || /^[A-Z][A-Z0-9_]*$/.test(value.text);
  if (ts.isPrefixUnaryExpression(value)) return isConstant(value.operand);
  if (ts.isArrayLiteralExpression(value)) return value.elements.every(isConstant);
  if (ts.isObjectLiteralExpression(value)) {
    return value.properties.every((one) => ts.isPropertyAssignment(one) && isConstant(one.initializer));
  }
  return ts.isLiteralExpression(value) || KEYWORDS.has(value.kind);
}

/** Whether a comment stands in the block, beside its statements. */
function saysWhy(block) {
  const statements = block.statements.map((one) => one.getText());
  return /\/[/*]/.test(statements.reduce((text, one) => text.replace(one, () => ""), block.getText()));
}

/** Places in a file's text that drop an error, as `{ line, rule }`. */
export function droppedErrors(text, name = "file.tsx") {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found = [];
  const add = (node, rule) => {
    found.push({ line: file.getLineAndCharacterOfPosition(node.getStart()).line + 1, rule, why: RULES[rule] });
  };
  const results = new Set();
  const collect = (node) => {
    if (ts.isVariableDeclaration(node) && node.initializer && ts.isCallExpression(node.initializer)) {
      if (HOOKS.has(calledName(node.initializer)) && ts.isIdentifier(node.name)) results.add(node.name.text);
    }
    ts.forEachChild(node, collect);
  };
  collect(file);
  const visit = (node) => {
    if (ts.isCallExpression(node) && HOOKS.has(calledName(node))) checkHook(node, add);
    if (ts.isCallExpression(node) && calledName(node) === "catch" && dropsError(node.arguments[0])) add(node, "caught");
    if (ts.isCatchClause(node) && doesNothing(node.block) && !saysWhy(node.block)) add(node, "caught");
    if (ts.isBinaryExpression(node) && /^(\?\?|\|\|)$/.test(node.operatorToken.getText())) {
      if (isDataOf(node.left, results)) add(node, "otherwise");
    }
    if (ts.isVoidExpression(node) && ts.isCallExpression(node.expression) && !SAFE.has(calledName(node.expression))) {
      add(node, "voided");
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function checkHook(call, add) {
  const { parent } = call;
  if (ts.isReturnStatement(parent) || (ts.isArrowFunction(parent) && parent.body === call)) return;
  if (ts.isCallExpression(parent) && parent.arguments.includes(call)) return;
  if (!ts.isVariableDeclaration(parent) || !ts.isIdentifier(parent.name)) return add(call, "held");
  if (!isLookedAt(enclosingFunction(parent), parent.name.text, parent)) add(call, "looked");
}

// Node gives the path as it was typed and the address of the file itself: escaped, and with links followed.
if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const folder = process.argv[2] ?? "src";
  const faults = sources(folder).flatMap((path) =>
    droppedErrors(readFileSync(path, "utf8"), path).map(({ line, why }) => `${relative(".", path)}:${line} ${why}`),
  );
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
