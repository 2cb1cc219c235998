// @vitest-environment jsdom

/** Each result of a health check that the server can send has a text in each language of the page. */

import { expect, test } from "vitest";
import { type Check, type CheckCode, checkText } from "@/features/settings/health-texts";
import { applyLanguage } from "@/shared/language/language";
import type { Language } from "@/shared/language/languages";
import openapi from "../../openapi.json";

/** All codes that the server can send, as its OpenAPI document lists them. */
const CODES = openapi.components.schemas.CheckCode.enum as CheckCode[];
const SERVER: Check = { name: "a name", ok: false, detail: "a detail", remedy: "a remedy", code: null, parameters: {} };

async function inLanguage(language: Language, check: Check) {
  await applyLanguage(language);
  return checkText(check);
}

test.each(CODES)("the page has a text in both languages for the code %s", async (code) => {
  const check = { ...SERVER, code };
  const [english, chinese] = [await inLanguage("en", check), await inLanguage("zh-Hans", check)];
  expect([english.name, chinese.name]).not.toContain(SERVER.name);
  // Names of programs and versions are the same in each language, and some details only the server knows.
  const isUntranslated = english.detail === SERVER.detail || /^(Offing )?…$/.test(english.detail);
  expect(english.detail === chinese.detail).toBe(isUntranslated);
});

test("a text names what the server says", async () => {
  const check = { ...SERVER, code: "disk_full" as const, parameters: { gb: "1.5", folder: "/data", min_gb: "2" } };
  expect(await inLanguage("en", check)).toEqual({
    name: "Disk",
    detail: "1.5 GB free for /data",
    remedy: "Free 2 GB, or set OFFING_HOME to another disk.",
  });
  expect((await inLanguage("zh-Hans", check)).detail).toBe("/data 所在磁盘剩余 1.5 GB");
});

test.each([null, "a_code_of_a_later_version", "constructor"])("the code %s shows the server's texts", async (code) => {
  const { name, detail, remedy } = SERVER;
  expect(await inLanguage("zh-Hans", { ...SERVER, code: code as Check["code"] })).toEqual({ name, detail, remedy });
});
