/**
 * The horizon's alphabet: one letter a step. The only home of what each letter means, how it looks and where it stands.
 *
 * Side and length tell kinds apart without colour: above for reaching out, below for taking in.
 */

import type { Step } from "../api/runs";
import type { StepLog } from "../stream/step-log";
import { stepAt } from "../stream/step-log";

export type Letter = "p" | "s" | "r" | "c" | "m" | "v" | "w" | "f" | "h" | "n";

export interface Mark {
  name: string;
  /** A custom property of tokens.css. */
  color: string;
  /** Share of the half it stands in. */
  up: number;
  down: number;
  /** How much it counts where one column stands for several steps. */
  weight: number;
}

export const MARKS: Record<Letter, Mark> = {
  p: { name: "plan", color: "--violet", up: 0.5, down: 0, weight: 4 },
  s: { name: "search", color: "--sea", up: 0.72, down: 0, weight: 3 },
  r: { name: "read", color: "--sea", up: 0.95, down: 0, weight: 3 },
  c: { name: "calculate", color: "--sea", up: 0.32, down: 0, weight: 3 },
  m: { name: "memory", color: "--sun-mark", up: 0, down: 0.5, weight: 2 },
  v: { name: "verify", color: "--moss", up: 0, down: 0.72, weight: 2 },
  w: { name: "report", color: "--sun-mark", up: 0, down: 1, weight: 5 },
  f: { name: "failed", color: "--coral", up: 1, down: 1, weight: 7 },
  h: { name: "resumed or steered", color: "--ink", up: 1, down: 1, weight: 6 },
  n: { name: "other", color: "--ink-3", up: 0.12, down: 0.12, weight: 1 },
};

export const LEGEND: readonly { letters: readonly Letter[]; name: string; color: string }[] = [
  { letters: ["p"], name: "plan", color: "--violet" },
  { letters: ["s", "r", "c"], name: "search and read", color: "--sea" },
  { letters: ["m", "w"], name: "memory and report", color: "--sun-mark" },
  { letters: ["v"], name: "verify", color: "--moss" },
  { letters: ["f"], name: "failed", color: "--coral" },
  { letters: ["h"], name: "resumed or steered", color: "--ink" },
];

export function letterOf(text: string | undefined): Letter {
  return text !== undefined && text in MARKS ? (text as Letter) : "n";
}

const BY_KIND: Partial<Record<Step["kind"], Letter>> = {
  human: "h",
  resumed: "h",
  answer: "h",
  report: "w",
  verdict: "v",
  memory: "m",
};

const BY_LABEL: Record<string, Letter> = {
  verify: "v",
  memory: "m",
  search: "s",
  read: "r",
  calculate: "c",
  plan: "p",
};

/** A step's letter, by the rule the server uses. */
export function markOf(step: Pick<Step, "kind" | "label" | "ok">): Letter {
  if (!step.ok || step.kind === "failure") return "f";
  const known = BY_KIND[step.kind] ?? BY_LABEL[step.label];
  return known ?? (step.kind === "plan" || step.kind === "analysis" ? "p" : "n");
}

/** The run's marks, continued with the steps that came since they were sent. */
export function continuedMarks(marks: string, log: StepLog): string {
  let text = marks;
  for (let seq = marks.length + 1; seq <= log.last; seq += 1) {
    const step = stepAt(log, seq);
    text += step ? markOf(step) : "n";
  }
  return text;
}

/** Sequence numbers of the steps with one of these letters, oldest first. */
export function seqsWith(marks: string, letters: readonly Letter[]): number[] {
  const seqs: number[] = [];
  for (let at = 0; at < marks.length; at += 1) if (letters.includes(letterOf(marks[at]))) seqs.push(at + 1);
  return seqs;
}
