/** What a run's state is called, and what a person can do about how it ended. The only home of these sentences. */

import type { Run, RunStatus, StopReason } from "../api/runs";

export type Tone = "sea" | "moss" | "sun" | "coral" | "";

interface Wording {
  word: string;
  tone: Tone;
}

const STATUS: Record<RunStatus, Wording> = {
  queued: { word: "Queued", tone: "" },
  running: { word: "Working", tone: "sea" },
  waiting: { word: "Waiting", tone: "sun" },
  paused: { word: "Paused", tone: "sun" },
  done: { word: "Answered", tone: "moss" },
  failed: { word: "Failed", tone: "coral" },
  cancelled: { word: "Cancelled", tone: "" },
  dead: { word: "Gave up", tone: "coral" },
};

export function statusWording(run: Pick<Run, "status" | "stop_reason"> & { questions?: number }): Wording {
  if (run.questions && (run.status === "waiting" || run.status === "running")) {
    return { word: "Waits for you", tone: "sun" };
  }
  if (run.status === "done" && run.stop_reason === "nothing_found") return { word: "Nothing found", tone: "sun" };
  if (run.status === "done" && run.stop_reason !== "answered") return { word: "Partial answer", tone: "sun" };
  return STATUS[run.status];
}

export interface Ending {
  /** Why the run ended, as a sentence. */
  why: string;
  /** What to do about it. */
  next: string;
  /** More turns, time or money would help: offer to dig deeper. */
  deeper: boolean;
}

const DEEPER = "What it found stands below. Dig deeper to go on from here with a larger budget.";
const SAFE = "Everything up to that point is kept.";

const ENDINGS: Record<StopReason, Ending> = {
  answered: { why: "The evidence was enough.", next: "", deeper: false },
  nothing_found: {
    why: "No document in scope says anything on this question.",
    next: "Add documents that do, widen the scope, or ask in the documents' own words.",
    deeper: false,
  },
  turn_limit: { why: "It used all its turns before the evidence was enough.", next: DEEPER, deeper: true },
  token_limit: { why: "It reached its token limit before the evidence was enough.", next: DEEPER, deeper: true },
  spend_limit: { why: "It reached the spending limit you set.", next: DEEPER, deeper: true },
  tenant_spend_limit: {
    why: "Today's spending cap for this installation is used up.",
    next: "Raise the cap in the settings, or ask again tomorrow.",
    deeper: false,
  },
  time_limit: { why: "It ran out of the time you gave it.", next: DEEPER, deeper: true },
  context_limit: { why: "It outgrew the space that its flow allows.", next: DEEPER, deeper: true },
  provider_down: {
    why: "The language model gave no usable answer in any attempt.",
    next: `${SAFE} Check the provider, or ask again with another engine.`,
    deeper: true,
  },
  invalid_output: {
    why: "The language model answered, but never in the form that was needed.",
    next: `${SAFE} Ask again with another model.`,
    deeper: true,
  },
  asked_to_write: {
    why: "You asked it to stop and write what it had.",
    next: "Dig deeper to go on from here.",
    deeper: true,
  },
  cancelled: {
    why: "You cancelled it, so it wrote no report.",
    next: `${SAFE} Ask again to start over.`,
    deeper: false,
  },
  graph_error: {
    why: "The graph itself failed.",
    next: `${SAFE} The last steps of the timeline show where.`,
    deeper: false,
  },
  no_progress: {
    why: "Several workers took it up and none got further.",
    next: `${SAFE} The last steps of the timeline show where it stuck.`,
    deeper: false,
  },
};

export function ending(reason: StopReason | null): Ending | null {
  return reason ? ENDINGS[reason] : null;
}

const VERBS: Record<string, string> = {
  search_library: "searching the library for",
  read_source: "reading",
  calculate: "calculating",
  run_python: "running code:",
  planner: "planning the next step",
  executor: "preparing the call",
  verifier: "checking whether the evidence is enough",
  generator: "writing the report",
  analysis: "taking the question apart",
};

/** `search_library: pooling` as a colleague says it, in two parts: what, and on what. */
export function doingWords(doing: string): { verb: string; object: string } {
  const [, name = "", object = ""] = /^([\w.-]+)(?::\s*(.*))?$/s.exec(doing) ?? [];
  const verb = VERBS[name];
  return verb ? { verb, object } : { verb: doing, object: "" };
}
