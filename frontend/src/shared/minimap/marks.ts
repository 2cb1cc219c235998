/**
 * Step marks: one letter per step, with its meaning, look and position. Side and length distinguish the kinds without
 * color: marks above the line gather information, marks below it process it.
 */

import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { Step } from "../api/runs";
import type { StepLog } from "../stream/step-log";
import { stepAt } from "../stream/step-log";

export type StepMark = "p" | "s" | "r" | "c" | "m" | "v" | "w" | "f" | "h" | "n";

export interface MarkStyle {
  name: MessageDescriptor;
  /** A custom property of tokens.css. */
  color: string;
  /** Fraction of the half in which the mark is drawn. */
  up: number;
  down: number;
  /** Weight among the marks of a column that represents several steps. */
  weight: number;
}

export const MARK_STYLES: Record<StepMark, MarkStyle> = {
  p: { name: msg`plan`, color: "--violet", up: 0.5, down: 0, weight: 4 },
  s: { name: msg`search`, color: "--sea", up: 0.72, down: 0, weight: 3 },
  r: { name: msg`read`, color: "--sea", up: 0.95, down: 0, weight: 3 },
  c: { name: msg`calculate`, color: "--sea", up: 0.32, down: 0, weight: 3 },
  m: { name: msg`memory`, color: "--sun-mark", up: 0, down: 0.5, weight: 2 },
  v: { name: msg`verify`, color: "--moss", up: 0, down: 0.72, weight: 2 },
  w: { name: msg`report`, color: "--sun-mark", up: 0, down: 1, weight: 5 },
  f: { name: msg`failed`, color: "--coral", up: 1, down: 1, weight: 7 },
  h: { name: msg`resume or user input`, color: "--ink", up: 1, down: 1, weight: 6 },
  n: { name: msg`other`, color: "--ink-3", up: 0.12, down: 0.12, weight: 1 },
};

export const LEGEND: readonly { marks: readonly StepMark[]; name: MessageDescriptor; color: string }[] = [
  { marks: ["p"], name: msg`plan`, color: "--violet" },
  { marks: ["s", "r", "c"], name: msg`search and read`, color: "--sea" },
  { marks: ["m", "w"], name: msg`memory and report`, color: "--sun-mark" },
  { marks: ["v"], name: msg`verify`, color: "--moss" },
  { marks: ["f"], name: msg`failed`, color: "--coral" },
  { marks: ["h"], name: msg`resume or user input`, color: "--ink" },
];

export function parseMark(text: string | undefined): StepMark {
  return text !== undefined && text in MARK_STYLES ? (text as StepMark) : "n";
}

const MARK_BY_KIND: Partial<Record<Step["kind"], StepMark>> = {
  user_message: "h",
  resumed: "h",
  input_response: "h",
  report: "w",
  verification: "v",
  memory: "m",
};

const MARK_BY_LABEL: Record<string, StepMark> = {
  verify: "v",
  memory: "m",
  search: "s",
  read: "r",
  calculate: "c",
  plan: "p",
};

/** Return the mark of a step, by the rule of the server. */
export function markForStep(step: Pick<Step, "kind" | "label" | "ok">): StepMark {
  if (!step.ok || step.kind === "failure") return "f";
  const mark = MARK_BY_KIND[step.kind] ?? MARK_BY_LABEL[step.label];
  return mark ?? (step.kind === "plan" || step.kind === "analysis" ? "p" : "n");
}

/** Extend the marks of the run with the steps that were received later. */
export function extendMarks(marks: string, log: StepLog): string {
  let text = marks;
  for (let seq = marks.length + 1; seq <= log.last; seq += 1) {
    const step = stepAt(log, seq);
    text += step ? markForStep(step) : "n";
  }
  return text;
}

/** Return the sequence numbers of the steps with one of these marks, oldest first. */
export function findSeqs(marks: string, wanted: readonly StepMark[]): number[] {
  const seqs: number[] = [];
  for (let at = 0; at < marks.length; at += 1) if (wanted.includes(parseMark(marks[at]))) seqs.push(at + 1);
  return seqs;
}
