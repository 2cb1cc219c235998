// @vitest-environment jsdom

/** Each code of a server's text has a text in each language of the page, and the page has no others. */

import { expect, test } from "vitest";
import { sentenceReasons } from "@/features/report/sentence-marks";
import { KNOWN_PART_CODES, rowTexts } from "@/features/timeline/row-texts";
import { applyLanguage } from "@/shared/language/language";
import type { Language } from "@/shared/language/languages";
import { sayText, type TextsByCode } from "@/shared/texts/coded-text";
import { FAILURE_TEXTS } from "@/shared/texts/failure-texts";
import { OFFER_TEXTS } from "@/shared/texts/offer-texts";
import { POSITION_TEXTS, positionText } from "@/shared/texts/position-texts";
import { PROBLEM_TEXTS, sayProblem } from "@/shared/texts/problem-texts";
import { REJECTION_TEXTS, REPORT_TEXTS } from "@/shared/texts/report-texts";
import { REQUEST_TEXTS } from "@/shared/texts/request-texts";
import { WAIT_TEXTS } from "@/shared/texts/wait-texts";
import openapi from "../../openapi.json";
import { aSentence, aStep } from "./builders";

/** All codes that the server can send, as its OpenAPI document lists them, and the texts of the page. */
const { ProblemTextCode, OfferTextCode, PositionTextCode, RejectionTextCode, RunTextCode, StepTextCode } =
  openapi.components.schemas;
const RUN_TEXTS: TextsByCode = { ...WAIT_TEXTS, ...FAILURE_TEXTS, ...REQUEST_TEXTS, ...REPORT_TEXTS };
const CATALOGS: [string, readonly string[], TextsByCode][] = [
  ["problems", ProblemTextCode.enum, PROBLEM_TEXTS],
  ["offers", OfferTextCode.enum, OFFER_TEXTS],
  ["runs", RunTextCode.enum, RUN_TEXTS],
  ["positions", PositionTextCode.enum, POSITION_TEXTS],
  ["rejected citations", RejectionTextCode.enum, REJECTION_TEXTS],
];

async function inLanguage(language: Language, texts: TextsByCode, code: string, parameters = {}) {
  await applyLanguage(language);
  return sayText(texts, "the server's text", { code, parameters });
}

test.each(CATALOGS)("page and server know the same codes of %s", (_, codes, texts) => {
  expect(Object.keys(texts).sort()).toEqual([...codes].sort());
});

test("page and server know the same codes of titles and details of steps", () => {
  expect([...KNOWN_PART_CODES].sort()).toEqual([...StepTextCode.enum].sort());
});

test.each(CATALOGS.flatMap(([kind, codes, texts]) => codes.map((code) => [kind, code, texts] as const)))(
  "the page says the code of %s %s in both languages",
  async (_, code, texts) => {
    const [english, chinese] = [await inLanguage("en", texts, code), await inLanguage("zh-Hans", texts, code)];
    expect([english, chinese]).not.toContain("the server's text");
    expect(english).not.toMatch(/\p{Script=Han}/u);
    expect(chinese).toMatch(/\p{Script=Han}/u);
  },
);

test("a text names what the server says, and a code of a later version shows the server's text", async () => {
  const parameters = { id: "7" };
  expect(await inLanguage("zh-Hans", PROBLEM_TEXTS, "no_run", parameters)).toBe("没有运行 7。");
  expect(await inLanguage("zh-Hans", PROBLEM_TEXTS, "of_a_later_version")).toBe("the server's text");
  expect(await inLanguage("zh-Hans", PROBLEM_TEXTS, "constructor")).toBe("the server's text");
});

test("a problem is said in the person's language, and what a person wrote in it is unchanged", async () => {
  await applyLanguage("zh-Hans");
  const problem = { title: "Conflict", detail: "There is a collection Tide tables already.", remedy: "Ask Ada." };
  const texts = { detail: { code: "collection_exists", parameters: { name: "Tide tables" } } };
  expect(sayProblem(409, { ...problem, texts })).toEqual({
    title: "当前状态不允许此操作",
    detail: "已有文档集 Tide tables。",
    remedy: "Ask Ada.",
  });
});

test("why a citation was rejected is said in the person's language, and the words of others stay", async () => {
  await applyLanguage("zh-Hans");
  const sentence = aSentence({
    supported: false,
    rule_verdict: "not_found",
    rejected: ["E2 was not retrieved in this run.", "Ask Ada."],
    rejected_texts: [{ code: "source_not_retrieved", parameters: { evidence: "E2" } }, null],
  });
  expect(sentenceReasons(sentence)).toEqual(["没有来源", "E2 不是在此运行中检索到的。", "Ask Ada."]);
});

test("the position of a citation is said in the person's language, and as the server says it with an unknown part", async () => {
  await applyLanguage("zh-Hans");
  const line = { code: "line", parameters: { first: "3" } } as const;
  const texts = [{ code: "section", parameters: { heading: "Client" } } as const, line];
  expect(positionText({ position: "section “Client”, line 3", position_texts: texts })).toBe("“Client”一节，第 3 行");
  const later = { code: "of_a_later_version", parameters: {} } as never;
  expect(positionText({ position: "verse 2, line 3", position_texts: [later, line] })).toBe("verse 2, line 3");
  expect(positionText({ position: "", position_texts: [] })).toBe("");
});

test("the parts of a step's detail are said one by one, and a model's words stay", async () => {
  await applyLanguage("zh-Hans");
  const words = { code: "text", parameters: { text: "the harbour" } } as const;
  const omitted = { code: "passages_omitted", parameters: { count: "4" } } as const;
  const step = aStep(1, { detail: "the harbour · 4 passages not shown", detail_texts: [words, omitted] });
  expect(rowTexts(step).detail).toBe("the harbour · 未显示的段落：4");
});
