import { expect, test } from "vitest";
import type { StepWithPayload } from "@/shared/api/step-payloads";
import { aGraph, aStep } from "@/testing/builders";
import { lastTurn, recordsAfterTurn } from "./context-records";
import { findStateView } from "./state-views";
import { buildBands } from "./subgoal-bands";

function whole(seq: number, part: Partial<StepWithPayload>): StepWithPayload {
  return { ...aStep(seq), payload: {}, ...part };
}

const roleCall = (turn: number, seq: number, output = {}) =>
  whole(seq, { kind: "role_call", turn, title: `did ${turn}`, payload: { output } });
const sees = (turn: number, seq: number) => whole(seq, { kind: "tool_result", turn, title: `saw ${turn}`, detail: "" });
const memoryEdit = (turn: number, seq: number, payload: Record<string, unknown>) =>
  whole(seq, { kind: "memory", turn, payload });

const PRUNED = [
  roleCall(1, 2),
  sees(1, 3),
  roleCall(2, 4),
  sees(2, 5),
  roleCall(3, 6),
  memoryEdit(3, 7, { op: "prune", id: "r3", deleted: ["r1", "r9"], note: "keep this", said: "Removed r1." }),
];

test("a record of several tool calls shows all of their results", () => {
  const [record] = recordsAfterTurn([roleCall(1, 2), sees(1, 3), sees(1, 4)], 1);
  const [single] = recordsAfterTurn([roleCall(1, 2), sees(1, 3)], 1);
  expect(record?.observation).toBe(`${single?.observation} · ${single?.observation}`);
});

test("a pruned record stays visible with the turn in which it was removed", () => {
  const records = recordsAfterTurn(PRUNED, 3);
  expect(records.map(({ id, status, removedInTurn }) => [id, status, removedInTurn])).toEqual([
    ["r1", "pruned", 3],
    ["r2", "live", null],
    ["r3", "live", null],
  ]);
  expect(records[2]).toMatchObject({ note: "keep this", observation: "Removed r1." });
});

test("the context after an earlier turn can be shown", () => {
  expect(recordsAfterTurn(PRUNED, 2).map(({ status }) => status)).toEqual(["live", "live"]);
  expect(lastTurn(PRUNED)).toBe(3);
});

test("an edit that failed changes no record's status", () => {
  const failed = [
    roleCall(1, 2),
    roleCall(2, 3),
    memoryEdit(2, 4, { op: "prune", id: "r2", deleted: [], note: "", said: "Nothing." }),
  ];
  expect(recordsAfterTurn(failed, 2).every(({ status }) => status === "live")).toBe(true);
});

test("a summary replaces all records before it", () => {
  const steps = [
    roleCall(1, 2),
    roleCall(2, 3),
    memoryEdit(2, 4, { op: "discard", id: "r2" }),
    roleCall(3, 5, { summary: "All so far." }),
    roleCall(4, 6),
  ];
  expect(recordsAfterTurn(steps, 4).map(({ id, status }) => [id, status])).toEqual([
    ["r1", "summarized"],
    ["r2", "discarded"],
    ["summary 3", "live"],
    ["r4", "live"],
  ]);
});

test("turns are in the band of their subgoal, and a repeated subgoal is a new band", () => {
  const turn = (seq: number, number: number, subgoal: string) =>
    whole(seq, { kind: "memory", turn: seq, payload: { subgoal_nr: number, subgoal, tool: "search", finding: "x" } });
  const bands = buildBands([
    turn(1, 1, "a"),
    turn(2, 1, "a"),
    turn(3, 2, "b"),
    turn(4, 3, "a"),
    whole(5, { payload: {} }),
  ]);
  expect(bands.map(({ subgoal, turns }) => [subgoal, turns.length])).toEqual([
    ["a", 2],
    ["b", 1],
    ["a", 1],
  ]);
});

test("the state view is the one that the graph declares", () => {
  const graphs = [aGraph({ name: "mine", state_view: "context" }), aGraph({ name: "bare", state_view: null })];
  expect(["mine", "bare", "gone"].map((name) => findStateView(graphs, name))).toEqual(["context", null, null]);
});
