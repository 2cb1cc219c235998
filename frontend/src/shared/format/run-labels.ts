/** Labels of run states, and explanations of stop reasons. */

import type { Run, RunStatus, StopReason } from "../api/runs";

export type Tone = "sea" | "moss" | "sun" | "coral" | "";

interface StatusLabel {
  label: string;
  tone: Tone;
}

const STATUS_LABELS: Record<RunStatus, StatusLabel> = {
  queued: { label: "Queued", tone: "" },
  running: { label: "Running", tone: "sea" },
  waiting: { label: "Waiting", tone: "sun" },
  paused: { label: "Paused", tone: "sun" },
  done: { label: "Answered", tone: "moss" },
  failed: { label: "Failed", tone: "coral" },
  cancelled: { label: "Cancelled", tone: "" },
};

export function runStatusLabel(
  run: Pick<Run, "status" | "stop_reason"> & { pending_input_requests?: number },
): StatusLabel {
  if (run.pending_input_requests && (run.status === "waiting" || run.status === "running")) {
    return { label: "Waiting for you", tone: "sun" };
  }
  if (run.status === "done" && run.stop_reason === "nothing_found") return { label: "Nothing found", tone: "sun" };
  if (run.status === "done" && run.stop_reason !== "answered") return { label: "Partial answer", tone: "sun" };
  if (run.status === "failed" && run.stop_reason === "no_progress") return { label: "Stalled", tone: "coral" };
  return STATUS_LABELS[run.status];
}

export interface StopReasonInfo {
  /** Why the run ended, as a sentence. */
  explanation: string;
  /** What the user can do about it. */
  suggestion: string;
  /** Whether a larger budget would help. The web UI then offers to dig deeper. */
  canDigDeeper: boolean;
}

const DIG_DEEPER = "Its findings are shown below. Dig deeper to continue with a larger budget.";
const STEPS_SAVED = "All steps up to that point are saved.";

const STOP_REASONS: Record<StopReason, StopReasonInfo> = {
  answered: { explanation: "The run collected enough evidence.", suggestion: "", canDigDeeper: false },
  nothing_found: {
    explanation: "No document in the scope contains anything about this question.",
    suggestion: "Add more documents, widen the scope, or use the wording of the documents in the question.",
    canDigDeeper: false,
  },
  saturated: {
    explanation: "The latest turns of the deep run found nothing new.",
    suggestion: "Its findings are shown below. To find more, add documents, allow the web, or ask in other words.",
    canDigDeeper: false,
  },
  turn_limit: {
    explanation: "The run used all its turns before it had enough evidence.",
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  token_limit: {
    explanation: "The run reached its token limit before it had enough evidence.",
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  spend_limit: {
    explanation: "The run reached the maximum cost that you set.",
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  tenant_spend_limit: {
    explanation: "The daily spending limit for this installation is used up.",
    suggestion: "Raise the limit in the settings, or ask again tomorrow.",
    canDigDeeper: false,
  },
  time_limit: {
    explanation: "The run reached the maximum time that you set.",
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  context_limit: {
    explanation: "The run exceeded the context size that its graph allows.",
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  provider_down: {
    explanation: "The language model returned no usable response in any attempt.",
    suggestion: `${STEPS_SAVED} Check the provider, or ask again with another engine.`,
    canDigDeeper: true,
  },
  invalid_output: {
    explanation: "The language model responded, but never in the required format.",
    suggestion: `${STEPS_SAVED} Ask again with another model.`,
    canDigDeeper: true,
  },
  finish_requested: {
    explanation: "You finished the run early.",
    suggestion: "Dig deeper to continue from here.",
    canDigDeeper: true,
  },
  cancelled: {
    explanation: "You cancelled the run, so it has no report.",
    suggestion: `${STEPS_SAVED} Ask again to start over.`,
    canDigDeeper: false,
  },
  graph_error: {
    explanation: "The graph failed.",
    suggestion: `${STEPS_SAVED} The last steps of the timeline show where.`,
    canDigDeeper: false,
  },
  no_progress: {
    explanation: "Several workers claimed the run, and none made progress.",
    suggestion: `${STEPS_SAVED} The last steps of the timeline show where it stalled.`,
    canDigDeeper: false,
  },
};

export function stopReasonInfo(reason: StopReason | null): StopReasonInfo | null {
  return reason ? STOP_REASONS[reason] : null;
}

const ACTION_VERBS: Record<string, string> = {
  search_library: "searching the library for",
  read_source: "reading",
  calculate: "calculating",
  run_python: "running code:",
  planner: "planning the next step",
  executor: "preparing the tool call",
  verifier: "checking whether the evidence is enough",
  generator: "writing the report",
  analysis: "analyzing the question",
};

/** Split an action such as `search_library: pooling` into a readable verb and its object. */
export function currentActionText(action: string): { verb: string; object: string } {
  const [, name = "", object = ""] = /^([\w.-]+)(?::\s*(.*))?$/s.exec(action) ?? [];
  const verb = ACTION_VERBS[name];
  return verb ? { verb, object } : { verb: action, object: "" };
}
