import { expect, test } from "vitest";
import { listDifferences } from "./differences";
import { describeLeaving } from "./leaving";
import { DEFAULT_SETTINGS, type Settings } from "./settings";

const leaving = (part: Partial<Settings>) => describeLeaving({ ...DEFAULT_SETTINGS, ...part });

test("one sentence says what leaves this machine", () => {
  expect(leaving({ engine: "extractive" })).toBe("Nothing leaves this machine.");
  expect(leaving({ offline: true })).toMatch(/^Nothing leaves this machine\./);
  expect(leaving({})).toBe("Leaves this machine: question and passages to the default model, if it is elsewhere.");
  expect(leaving({ engine: "litellm:openai/a;fallback=groq/b", roleEngines: { planner: "litellm:ollama/c" } })).toBe(
    "Leaves this machine: question and passages to openai and groq · question and passages to your own model server, if it is elsewhere.",
  );
  expect(leaving({ engine: "extractive", web: true, onlyDomains: "a.org b.org", mcp: ["tickets"] })).toBe(
    "Leaves this machine: searches to the search engines · addresses of pages to a.org and b.org · arguments of tools to tickets.",
  );
});

test("only what differs from the defaults is listed", () => {
  expect(listDifferences(DEFAULT_SETTINGS)).toEqual([]);
  expect(
    listDifferences({
      ...DEFAULT_SETTINGS,
      graph: "hiper",
      web: true,
      excludedDomains: "ads.org",
      usd: "2",
      length: "brief",
      reviewPlan: true,
    }),
  ).toEqual(["hiper", "web", "not ads.org", "at most $2", "brief report", "shows its plan"]);
});
