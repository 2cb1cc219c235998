import { expect as expectThat, test } from "vitest";
import type { RunStatistics } from "@/shared/api/asking";
import { describeAmount, expect } from "./expectation";
import { DEFAULT_SETTINGS } from "./settings";

function aRow(part: Partial<RunStatistics> = {}): RunStatistics {
  const one = { low: 1, median: 2, high: 3 };
  return {
    graph: "agentflow",
    models: null,
    runs: 9,
    turns: one,
    seconds_per_turn: one,
    tokens_per_turn: one,
    cost_usd_per_turn: one,
    ...part,
  };
}

test("the same graph and models come first, then the same graph with any model", () => {
  const rows = [
    aRow(),
    aRow({ models: ["extractive", "litellm:openai/a"], runs: 2 }),
    aRow({ graph: "hiper", runs: 1 }),
  ];
  const settings = {
    ...DEFAULT_SETTINGS,
    engine: "litellm:openai/a;max_tokens=9",
    roleEngines: { verifier: "extractive" },
  };
  expectThat(expect(rows, settings)).toMatchObject({ runs: 2, sameModels: true });
  expectThat(expect(rows, { ...settings, roleEngines: {} })).toMatchObject({ runs: 9, sameModels: false });
  expectThat(expect(rows, DEFAULT_SETTINGS)).toMatchObject({ runs: 9, sameModels: false });
  expectThat(expect(rows, { ...DEFAULT_SETTINGS, graph: "memact" })).toBeNull();
});

test("the range is that of all turns, for one run or several", () => {
  const expectation = expect([aRow()], { ...DEFAULT_SETTINGS, turns: 60 });
  expectThat(expectation?.seconds).toEqual({ low: 60, high: 180 });
  expectThat(expectation && describeAmount(expectation)).toBe("1 min to 3 min and $60.00 to $180.00");
  expectThat(expectation && describeAmount(expectation, 2)).toBe("2 min to 6 min and $120.00 to $360.00");
});

test("tokens are named where no cost is known, and nothing is named where neither is", () => {
  const free = { low: 0, median: 0, high: 0 };
  const tokens = expect([aRow({ cost_usd_per_turn: free })], DEFAULT_SETTINGS);
  expectThat(tokens && describeAmount(tokens)).toBe("12 s to 36 s and 12 to 36 tokens");
  const time = expect([aRow({ cost_usd_per_turn: free, tokens_per_turn: free })], DEFAULT_SETTINGS);
  expectThat(time && describeAmount(time)).toBe("12 s to 36 s");
});
