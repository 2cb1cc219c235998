// @vitest-environment jsdom

import { i18n } from "@lingui/core";
import { afterEach, expect, test } from "vitest";
import { joinList } from "../format/lists";
import { formatAgo, formatCompact, formatDuration } from "../format/numbers";
import { runStatusLabel, stopReasonInfo } from "../format/run-labels";
import { applyLanguage } from "./language";
import { chooseLanguage } from "./languages";

afterEach(() => applyLanguage("en"));

test.each([
  [["zh-CN", "en"], "zh-Hans"],
  [["zh"], "zh-Hans"],
  [["zh-SG"], "zh-Hans"],
  [["zh-TW", "zh-HK", "en-US"], "en"],
  [["de-DE", "zh-Hans-CN", "en"], "zh-Hans"],
  [["en-GB", "zh-CN"], "en"],
  [["fr"], "en"],
  [["not a tag", "zh-CN"], "zh-Hans"],
  [[], "en"],
])("the languages %j of a browser select %s", (wanted, language) => {
  expect(chooseLanguage(wanted)).toBe(language);
});

test("labels, durations, dates and lists follow the language", async () => {
  await applyLanguage("zh-Hans");
  const now = Date.parse("2026-03-10T10:00:00Z");
  expect(runStatusLabel({ status: "queued", stop_reason: null }).label).toBe("排队中");
  expect(stopReasonInfo("graph_error")?.explanation).toBe("图执行失败。");
  expect([formatDuration(70), formatAgo("2026-03-10T09:20:00Z", now)]).toEqual(["1 分 10 秒", "40 分钟前"]);
  expect(formatAgo("2026-03-01T09:20:00Z", now)).toBe("3月1日");
  expect([formatCompact(12_345), joinList(["甲", "乙", "丙"])]).toEqual(["12.3 k", "甲、乙和丙"]);
});

test("the document has the language of the page", async () => {
  await applyLanguage("zh-Hans");
  expect([document.documentElement.lang, i18n.locale]).toEqual(["zh-Hans", "zh-Hans"]);
});
