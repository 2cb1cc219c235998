import { expect, test } from "vitest";
import type { WholeStep } from "@/shared/api/flow";
import { aStep } from "@/testing/builders";
import { contextAt, lastTurn } from "./context-records";
import { flowOf } from "./flows";
import { bandsOf } from "./subgoal-bands";

function whole(seq: number, part: Partial<WholeStep>): WholeStep {
  return { ...aStep(seq), payload: {}, ...part };
}

const acts = (turn: number, seq: number, output = {}) =>
  whole(seq, { kind: "turn", turn, title: `did ${turn}`, payload: { output } });
const sees = (turn: number, seq: number) => whole(seq, { kind: "tool", turn, title: `saw ${turn}`, detail: "" });
const edits = (turn: number, seq: number, payload: Record<string, unknown>) =>
  whole(seq, { kind: "memory", turn, payload });

const PRUNED = [
  acts(1, 2),
  sees(1, 3),
  acts(2, 4),
  sees(2, 5),
  acts(3, 6),
  edits(3, 7, { op: "prune", id: "r3", deleted: ["r1", "r9"], note: "keep this", said: "Removed r1." }),
];

test("a pruned record stays to be read, and says when it left", () => {
  const records = contextAt(PRUNED, 3);
  expect(records.map(({ id, fate, until }) => [id, fate, until])).toEqual([
    ["r1", "pruned", 3],
    ["r2", "live", null],
    ["r3", "live", null],
  ]);
  expect(records[2]).toMatchObject({ note: "keep this", observation: "Removed r1." });
});

test("the context can be read as it was after an earlier turn", () => {
  expect(contextAt(PRUNED, 2).map(({ fate }) => fate)).toEqual(["live", "live"]);
  expect(lastTurn(PRUNED)).toBe(3);
});

test("an edit that failed changes no record's fate", () => {
  const failed = [
    acts(1, 2),
    acts(2, 3),
    edits(2, 4, { op: "prune", id: "r2", deleted: [], note: "", said: "Nothing." }),
  ];
  expect(contextAt(failed, 2).every(({ fate }) => fate === "live")).toBe(true);
});

test("a summary takes the place of everything before it", () => {
  const steps = [
    acts(1, 2),
    acts(2, 3),
    edits(2, 4, { op: "discard", id: "r2" }),
    acts(3, 5, { summary: "All so far." }),
    acts(4, 6),
  ];
  expect(contextAt(steps, 4).map(({ id, fate }) => [id, fate])).toEqual([
    ["r1", "summed up"],
    ["r2", "discarded"],
    ["summary 3", "live"],
    ["r4", "live"],
  ]);
});

test("turns stand in the band of their subgoal, and a subgoal that comes back is a band of its own", () => {
  const turn = (seq: number, number: number, subgoal: string) =>
    whole(seq, { kind: "memory", turn: seq, payload: { subgoal_nr: number, subgoal, tool: "search", finding: "x" } });
  const bands = bandsOf([
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

test("graphs of other people have no view of their own", () => {
  expect([flowOf("supo"), flowOf("hiper"), flowOf("mine")]).toEqual(["context", "subgoals", null]);
});
