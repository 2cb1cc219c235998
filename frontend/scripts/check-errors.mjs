// Reports code that drops an error: a query whose error is never read looks like an empty result. Part of
// `npm run check`.
//
//   node scripts/check-errors.mjs [FOLDER]   src by default; the exit code is 1 if there are problems, and each is printed
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
const ERROR_FIELDS = new Set(["error", "isError", "isLoadingError"]);
/** Promises that never reject, or whose callee shows the error. */
const SAFE = new Set(["invalidateQueries", "invalidateVersionQueries"]);

const RULES = {
  destructured: "Keep the whole result in a variable. Destructuring it at once drops its error.",
  unread:
    "The error of this result is never read. Show it with `Loaded`, `Failure` or `ProblemNote`, or read `.error`.",
  fallback: "`??` and `||` on the data of a query show a failure as an empty result. Show the query with `Loaded`.",
  caught:
    "This handler drops the error. Show it, or add a comment inside a catch block that explains why it may be dropped.",
  voided: "`void` drops a rejection of this promise. Await it where the error is shown.",
};

/** List the source files of a folder that ship. */
function listSources(folder) {
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

/** Return whether the result with this name is passed on whole or its error is read, anywhere in the function. */
function isErrorRead(scope, name, declaration) {
  let found = false;
  const visit = (node) => {
    if (found || node === declaration) return;
    if (ts.isIdentifier(node) && node.text === name) found = passesOn(node) || found;
    ts.forEachChild(node, visit);
  };
  visit(scope);
  return found;
}

function passesOn(node) {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) {
    return parent.expression === node && ERROR_FIELDS.has(parent.name.text);
  }
  if (ts.isCallExpression(parent)) return parent.arguments.includes(node);
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  if (ts.isConditionalExpression(parent)) return parent.condition !== node;
  return ts.isJsxExpression(parent) || ts.isShorthandPropertyAssignment(parent) || ts.isReturnStatement(parent);
}

/** Return whether the node is an access chain through `data`: `query.data`, `query.data?.items`, `query.data?.[0]`. */
function isDataOf(node, names) {
  let at = node;
  let through = false;
  while (ts.isPropertyAccessExpression(at) || ts.isElementAccessExpression(at) || ts.isCallExpression(at)) {
    if (ts.isPropertyAccessExpression(at) && at.name.text === "data") through = true;
    at = at.expression;
  }
  return through && ts.isIdentifier(at) && names.has(at.text);
}

/** Return whether a rejection handler ignores the error: it is empty or its value is a constant. */
function dropsError(handler) {
  if (!handler || !(ts.isArrowFunction(handler) || ts.isFunctionExpression(handler))) return false;
  return ts.isBlock(handler.body) ? doesNothing(handler.body) : isConstant(handler.body);
}

/** Return whether a block is empty or only returns, breaks or continues with a constant. */
function doesNothing(block) {
  const [first, second] = block.statements;
  if (!first) return true;
  if (second) return false;
  if (ts.isReturnStatement(first)) return !first.expression || isConstant(first.expression);
  return ts.isBreakStatement(first) || ts.isContinueStatement(first);
}

const KEYWORDS = new Set([ts.SyntaxKind.NullKeyword, ts.SyntaxKind.FalseKeyword, ts.SyntaxKind.TrueKeyword]);

/** Return whether a value is a literal, an array or object of literals, or a name in capitals. */
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

/** Return whether the block contains a comment beside its statements. */
function hasComment(block) {
  const statements = block.statements.map((one) => one.getText());
  return /\/[/*]/.test(statements.reduce((text, one) => text.replace(one, () => ""), block.getText()));
}

/** Places in a file's text that drop an error, as `{ line, rule }`. */
export function findDroppedErrors(text, name = "file.tsx") {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const problems = [];
  const add = (node, rule) => {
    problems.push({ line: file.getLineAndCharacterOfPosition(node.getStart()).line + 1, rule, why: RULES[rule] });
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
    if (ts.isCatchClause(node) && doesNothing(node.block) && !hasComment(node.block)) add(node, "caught");
    if (ts.isBinaryExpression(node) && /^(\?\?|\|\|)$/.test(node.operatorToken.getText())) {
      if (isDataOf(node.left, results)) add(node, "fallback");
    }
    if (ts.isVoidExpression(node) && ts.isCallExpression(node.expression) && !SAFE.has(calledName(node.expression))) {
      add(node, "voided");
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return problems;
}

function checkHook(call, add) {
  const { parent } = call;
  if (ts.isReturnStatement(parent) || (ts.isArrowFunction(parent) && parent.body === call)) return;
  if (ts.isCallExpression(parent) && parent.arguments.includes(call)) return;
  if (!ts.isVariableDeclaration(parent) || !ts.isIdentifier(parent.name)) return add(call, "destructured");
  if (!isErrorRead(enclosingFunction(parent), parent.name.text, parent)) add(call, "unread");
}

// Node passes the path as it was typed, and the URL of the module escaped and with links resolved.
if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const folder = process.argv[2] ?? "src";
  const faults = listSources(folder).flatMap((path) =>
    findDroppedErrors(readFileSync(path, "utf8"), path).map(({ line, why }) => `${relative(".", path)}:${line} ${why}`),
  );
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
