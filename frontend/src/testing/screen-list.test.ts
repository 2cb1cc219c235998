import { expect, test } from "vitest";
import { SECTIONS } from "@/features/settings/sections";
import { SCREENS } from "../../e2e/screen-list.mjs";

test("every section of the settings is one of the screens that a browser opens", () => {
  const names = new Set(SCREENS.map(({ name }) => name));
  expect(SECTIONS.map(({ name }) => `settings-${name}`).filter((name) => !names.has(name))).toEqual([]);
});
