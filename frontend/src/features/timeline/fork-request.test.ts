import { expect, test } from "vitest";
import { parseEngineConfig } from "@/shared/api/installation";
import type { Run } from "@/shared/api/runs";
import { aRun } from "@/testing/builders";
import { buildFork, fieldsOfRun, validateFork } from "./fork-request";

const RUN = aRun({
  budget: { depth: "deep", max_turns: 40, max_tokens: 9_000, max_cost_usd: 1.5, max_seconds: 90 },
  engines: { planner: parseEngineConfig("extractive") } as Run["engines"],
});

test("a fork without changes keeps the budget and the engines of its run", () => {
  const fields = fieldsOfRun(RUN, "");
  expect(fields).toMatchObject({ turns: "40", usd: "1.5", minutes: "1.5" });
  expect(buildFork(RUN, ["planner"], 7, fields)).toEqual({ at_seq: 7, message: "", engines: {} });
});

test("a changed budget keeps the limits that the form does not show", () => {
  const fields = { ...fieldsOfRun(RUN, ""), turns: "60", usd: "" };
  expect(buildFork(RUN, [], 7, fields).budget).toEqual({
    depth: "deep",
    max_turns: 60,
    max_tokens: 9_000,
    max_cost_usd: null,
    max_seconds: 90,
  });
});

test("an engine answers every role or the chosen one", () => {
  const fields = { ...fieldsOfRun(RUN, " Only rivers. "), engine: "litellm:openai/m" };
  const every = buildFork(RUN, ["planner", "verifier"], 7, fields);
  expect(Object.keys(every.engines ?? {})).toEqual(["planner", "verifier"]);
  expect(every.message).toBe("Only rivers.");
  const one = buildFork(RUN, ["planner", "verifier"], 7, { ...fields, role: "verifier" });
  expect(one.engines).toMatchObject({ verifier: { engine: "litellm", model: "openai/m" } });
});

test("limits that the server would reject are named", () => {
  const fields = fieldsOfRun(RUN, "");
  expect(validateFork(fields)).toBeNull();
  for (const wrong of [{ turns: "0" }, { turns: "2.5" }, { turns: "" }, { usd: "-1" }, { minutes: "soon" }]) {
    expect(validateFork({ ...fields, ...wrong })).not.toBeNull();
  }
});
