/** What a run waits for. Shown after "waiting for". */

import { plural, t } from "@lingui/core/macro";
import type { Schemas } from "../api/client";
import { sayText, type TextsByCode } from "./coded-text";

type WaitTextCode = Extract<Schemas["RunTextCode"], `wait_${string}`>;

const answers = (count: string) =>
  plural(Number(count), { one: "an answer of a person", other: "# answers of a person" });
const childRuns = (count: string) => plural(Number(count), { one: "a child run", other: "# child runs" });
const both = (first: string, second: string) => t`${first} and ${second}`;

export const WAIT_TEXTS: TextsByCode<WaitTextCode> = {
  wait_resume: () => t`someone to resume it`,
  wait_earlier_runs: () => t`the earlier runs of its thread`,
  wait_start_time: () => t`its start time`,
  wait_answer: () => answers("1"),
  wait_answers: ({ count }) => answers(count),
  wait_child: () => childRuns("1"),
  wait_children: ({ count }) => childRuns(count),
  wait_answer_and_child: () => both(answers("1"), childRuns("1")),
  wait_answers_and_child: ({ count }) => both(answers(count), childRuns("1")),
  wait_answer_and_children: ({ children }) => both(answers("1"), childRuns(children)),
  wait_answers_and_children: ({ count, children }) => both(answers(count), childRuns(children)),
  wait_worker: ({ graph, version }) => t`a worker with ${graph} ${version}`,
  wait_worker_because: ({ graph, version, reason }) =>
    t`a worker with ${graph} ${version}; with the version installed here, ${reason}`,
};

/** Return what a run waits for. */
export function waitReason(run: { waiting_for: string | null; texts: Record<string, Schemas["RunTextOut"]> }): string {
  return sayText(WAIT_TEXTS, run.waiting_for ?? t`an unknown condition`, run.texts.waiting_for);
}
