/** Labels of run states, and explanations of stop reasons. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { Run, RunStatus, StopReason } from "../api/runs";

export type Tone = "sea" | "moss" | "sun" | "coral" | "";

interface StatusLabel {
  label: string;
  tone: Tone;
}

const STATUS_LABELS: Record<RunStatus, { label: MessageDescriptor; tone: Tone }> = {
  queued: { label: msg`Queued`, tone: "" },
  running: { label: msg`Running`, tone: "sea" },
  waiting: { label: msg`Waiting`, tone: "sun" },
  paused: { label: msg`Paused`, tone: "sun" },
  done: { label: msg`Answered`, tone: "moss" },
  failed: { label: msg`Failed`, tone: "coral" },
  cancelled: { label: msg`Cancelled`, tone: "" },
};

export function runStatusLabel(
  run: Pick<Run, "status" | "stop_reason"> & { pending_input_requests?: number; interrupted?: boolean },
): StatusLabel {
  const asks = run.pending_input_requests && (run.status === "waiting" || run.status === "running");
  if (asks || run.interrupted) {
    return { label: t`Waiting for you`, tone: "sun" };
  }
  if (run.status === "done" && run.stop_reason === "nothing_found") return { label: t`Nothing found`, tone: "sun" };
  if (run.status === "done" && run.stop_reason !== "answered") return { label: t`Partial answer`, tone: "sun" };
  if (run.status === "failed" && run.stop_reason === "no_progress") return { label: t`Stalled`, tone: "coral" };
  const { label, tone } = STATUS_LABELS[run.status];
  return { label: i18n._(label), tone };
}

export interface StopReasonInfo {
  /** Why the run ended, as a sentence. */
  explanation: string;
  /** What the user can do about it. */
  suggestion: string;
  /** Whether a larger budget would help. The web UI then offers to dig deeper. */
  canDigDeeper: boolean;
}

const DIG_DEEPER = msg`Its findings are shown below. Dig deeper to continue with a larger budget.`;

interface StopReasonTexts {
  explanation: MessageDescriptor;
  /** `null` means that there is nothing to do. */
  suggestion: MessageDescriptor | null;
  canDigDeeper: boolean;
}

const STOP_REASONS: Record<StopReason, StopReasonTexts> = {
  answered: { explanation: msg`The run collected enough evidence.`, suggestion: null, canDigDeeper: false },
  nothing_found: {
    explanation: msg`No passage was found that answers this question.`,
    suggestion: msg`Add more documents, widen the scope, or use the wording of the documents in the question.`,
    canDigDeeper: false,
  },
  saturated: {
    explanation: msg`The latest turns of the deep run found nothing new.`,
    suggestion: msg`Its findings are shown below. To find more, add documents, allow the web, or ask in other words.`,
    canDigDeeper: false,
  },
  turn_limit: {
    explanation: msg`The run used all its turns before it had enough evidence.`,
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  token_limit: {
    explanation: msg`The run reached its token limit before it had enough evidence.`,
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  spend_limit: {
    explanation: msg`The run reached the maximum cost that you set.`,
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  tenant_spend_limit: {
    explanation: msg`The daily spending limit for this installation is used up.`,
    suggestion: msg`Raise the limit in the settings, or ask again tomorrow.`,
    canDigDeeper: false,
  },
  time_limit: {
    explanation: msg`The run reached the maximum time that you set.`,
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  context_limit: {
    explanation: msg`The run exceeded the context size that its graph allows.`,
    suggestion: DIG_DEEPER,
    canDigDeeper: true,
  },
  provider_down: {
    explanation: msg`The language model returned no usable response in any attempt.`,
    suggestion: msg`All steps up to that point are saved. Check the provider, or ask again with another engine.`,
    canDigDeeper: true,
  },
  invalid_output: {
    explanation: msg`The language model responded, but never in the required format.`,
    suggestion: msg`All steps up to that point are saved. Ask again with another model.`,
    canDigDeeper: true,
  },
  finish_requested: {
    explanation: msg`You finished the run early.`,
    suggestion: msg`Dig deeper to continue from here.`,
    canDigDeeper: true,
  },
  cancelled: {
    explanation: msg`You cancelled the run, so it has no report.`,
    suggestion: msg`All steps up to that point are saved. Ask again to start over.`,
    canDigDeeper: false,
  },
  graph_error: {
    explanation: msg`The graph failed.`,
    suggestion: msg`All steps up to that point are saved. The last steps of the timeline show where.`,
    canDigDeeper: false,
  },
  no_progress: {
    explanation: msg`Several workers claimed the run, and none made progress.`,
    suggestion: msg`All steps up to that point are saved. The last steps of the timeline show where it stalled.`,
    canDigDeeper: false,
  },
};

export function stopReasonInfo(reason: StopReason | null): StopReasonInfo | null {
  if (!reason) return null;
  const { explanation, suggestion, canDigDeeper } = STOP_REASONS[reason];
  return { explanation: i18n._(explanation), suggestion: suggestion ? i18n._(suggestion) : "", canDigDeeper };
}

const ACTION_VERBS: Record<string, MessageDescriptor> = {
  search_library: msg`searching the library for`,
  read_source: msg`reading`,
  calculate: msg`calculating`,
  run_python: msg`running code:`,
  planner: msg`planning the next step`,
  executor: msg`preparing the tool call`,
  verifier: msg`checking whether the evidence is enough`,
  generator: msg`writing the report`,
  analysis: msg`analyzing the question`,
};

/** Split an action such as `search_library: pooling` into a readable verb and its object. */
export function currentActionText(action: string): { verb: string; object: string } {
  const [, name = "", object = ""] = /^([\w.-]+)(?::\s*(.*))?$/s.exec(action) ?? [];
  const verb = ACTION_VERBS[name];
  return verb ? { verb: i18n._(verb), object } : { verb: action, object: "" };
}
