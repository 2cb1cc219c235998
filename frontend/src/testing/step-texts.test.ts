// @vitest-environment jsdom

/** Each code of a step's summary that the server can send has a text in each language of the page, and no others. */

import { expect, test } from "vitest";
import type { Step, StepSummaryCode } from "@/shared/api/runs";
import { KNOWN_CODES, listReadMessages, stepTexts } from "@/shared/format/step-texts";
import { applyLanguage } from "@/shared/language/language";
import type { Language } from "@/shared/language/languages";
import openapi from "../../openapi.json";

/** All codes that the server can send, as its OpenAPI document lists them. */
const CODES = openapi.components.schemas.StepSummaryCode.enum as StepSummaryCode[];
const SERVER = { title: "a title", detail: "a detail" };

async function inLanguage(language: Language, summary: Step["summary"]) {
  await applyLanguage(language);
  return stepTexts({ ...SERVER, summary });
}

test("page and server know the same codes", () => {
  expect([...KNOWN_CODES].sort()).toEqual([...CODES].sort());
});

test.each(CODES)("the page says the code %s in both languages", async (code) => {
  const summary = { code, parameters: {} };
  const [english, chinese] = [await inLanguage("en", summary), await inLanguage("zh-Hans", summary)];
  expect(english).not.toEqual(SERVER);
  expect(chinese).not.toEqual(english);
  expect(`${chinese.title} ${chinese.detail}`).toMatch(/\p{Script=Han}/u);
});

test("a text names what the server says", async () => {
  const summary = {
    code: "library_searched",
    parameters: { passages: 3, sources: 1, origin: "example.org", number: 2, size: 4 },
  } as const;
  expect((await inLanguage("en", summary)).detail).toBe(
    "3 passages, from 1 source, from example.org, call 2 of 4 at once",
  );
  expect((await inLanguage("zh-Hans", summary)).detail).toContain("3 个段落");
});

test.each([null, "a_code_of_a_later_version", "constructor"])(
  "the code %s shows the step's own texts",
  async (code) => {
    const summary = code === null ? null : { code: code as StepSummaryCode, parameters: {} };
    expect(await inLanguage("zh-Hans", summary)).toEqual(SERVER);
  },
);

test("which messages were read is a list of numbers, not a text to be parsed", () => {
  const read = { code: "messages_read", parameters: { seqs: [3, 5] } } as const;
  expect(listReadMessages({ summary: { ...read, parameters: { seqs: [3, 5] } } })).toEqual([3, 5]);
  expect(listReadMessages({ summary: null })).toEqual([]);
  expect(listReadMessages({ summary: { code: "messages_read", parameters: { seqs: "3" } } })).toEqual([]);
});
