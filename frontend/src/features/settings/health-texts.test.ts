import { i18n } from "@lingui/core";
import { expect, test } from "vitest";
import openapi from "../../../openapi.json";
import { messages as english } from "../../locales/en.po";
import { messages as chinese } from "../../locales/zh-Hans.po";
import { type Check, type CheckCode, checkText } from "./health-texts";

/** All codes that the server can send, as its OpenAPI document lists them. */
const CODES = openapi.components.schemas.CheckCode.enum as CheckCode[];
const SERVER: Check = { name: "a name", ok: false, detail: "a detail", remedy: "a remedy", code: null, parameters: {} };

const inLanguage = (language: string, check: Check) => {
  i18n.loadAndActivate({ locale: language, messages: language === "en" ? english : chinese });
  return checkText(check);
};

test.each(CODES)("the page has a text in both languages for the code %s", (code) => {
  const check = { ...SERVER, code };
  const names = ["en", "zh-Hans"].map((language) => inLanguage(language, check).name);
  expect(names).not.toContain(SERVER.name);
  const details = ["en", "zh-Hans"].map((language) => inLanguage(language, check).detail);
  const isFromServer = details[0] === SERVER.detail;
  const isNameAlone = /^(Offing )?…$/.test(details[0] ?? "");
  if (!isFromServer && !isNameAlone) expect(details[0]).not.toBe(details[1]);
});

test("a text names what the server says", () => {
  const check = { ...SERVER, code: "disk_full" as const, parameters: { gb: "1.5", folder: "/data", min_gb: "2" } };
  expect(inLanguage("en", check)).toEqual({
    name: "Disk",
    detail: "1.5 GB free for /data",
    remedy: "Free 2 GB, or set OFFING_HOME to another disk.",
  });
  expect(inLanguage("zh-Hans", check).detail).toBe("/data 所在磁盘剩余 1.5 GB");
});

test.each([null, "a_code_of_a_later_version", "constructor"])("the code %s shows the texts of the server", (code) => {
  const { name, detail, remedy } = SERVER;
  expect(inLanguage("zh-Hans", { ...SERVER, code: code as Check["code"] })).toEqual({ name, detail, remedy });
});
