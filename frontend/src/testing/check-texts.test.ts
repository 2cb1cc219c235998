import { expect, test } from "vitest";
// @ts-expect-error: a script of the checks, without types
import { compareCatalog, findInlineTexts } from "../../scripts/check-texts.mjs";

const rules = (code: string): string[] => findInlineTexts(code).map(({ rule }: { rule: string }) => rule);

test.each([
  ["function A() { return <b>Pause</b>; }", "inline"],
  ["function A() { return <b>{busy ? `Sending…` : name}</b>; }", "inline"],
  ["function A() { return <b>{done && 'no'}</b>; }", "inline"],
  ['function A() { return <input placeholder="no limit" />; }', "inline"],
  ['function A() { return <b aria-label="Steps" />; }', "inline"],
  ["function A() { return <b title={open ? 'less' : 'more'} />; }", "inline"],
  ['function A() { return <Total name="stale" />; }', "inline"],
  [`function a(n: number) { return \`\${n} steps shown\`; }`, "inline"],
  ["const LABELS = { done: { label: 'done' } };", "inline"],
  ["function a() { throw new ProblemError(0, 'The server cannot be reached'); }", "inline"],
  ["const TITLE = t`Pause`;", "early"],
  ["const STEPS = plural(3, { one: '# step', other: '# steps' });", "early"],
])("untranslated words are reported: %s", (code, rule) => {
  expect(rules(code)).toEqual(expect.arrayContaining([rule]));
});

test.each([
  ["function A() { return <b><Trans>Pause <i>now</i></Trans></b>; }"],
  ['function A() { return <Plural value={n} one="# step" other="# steps" />; }'],
  ["function A() { return <b title={t`Pause`}>{t`Pause`}</b>; }"],
  ["const LABELS = { done: { label: msg`done`, tone: 'moss' } };"],
  [`function A() { return <b className={on ? 'btn primary' : 'btn'} key={\`a b \${n}\`} />; }`],
  ['function A() { return <p className="mono">offing train job.toml</p>; }'],
  ["function A() { return <b>Offing</b>; }"],
  ["function a() { return document.querySelector('.list button'); }"],
  ["if (!root) throw new Error('index.html has no root');"],
  ["// Not translated: a language has its own name.\nconst NAMES = { en: 'English' };"],
  [`function A() { return <path d={\`M\${x} \${y}h4V9\`} />; }`],
])("translated words, names and code are not: %s", (code) => {
  expect(rules(code)).toEqual([]);
});

const used = { a: { message: "Pause" }, b: { message: "{count} steps" } };
const complete = {
  a: { message: "Pause", translation: "暂停" },
  b: { message: "{count} steps", translation: "{count} 步" },
};

test("a complete catalog has no problems", () => {
  expect(compareCatalog("zh-Hans", used, complete)).toEqual([]);
});

test.each([
  ["a text that is not in the catalog", { a: complete.a }, /"\{count\} steps" is not in the catalog/],
  ["a missing translation", { ...complete, a: { message: "Pause", translation: "" } }, /"Pause" has no translation/],
  ["an unused translation", { ...complete, c: { message: "Stop", translation: "停止" } }, /"Stop" is not used/],
  ["a lost placeholder", { ...complete, b: { message: "{count} steps", translation: "步" } }, /different placeholders/],
])("%s is reported", (_, stored, problem) => {
  const problems: string[] = compareCatalog("zh-Hans", used, stored);
  expect(problems).toEqual([expect.stringMatching(problem)]);
});
