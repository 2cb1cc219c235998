/** Labels of states, ledger reasons and events of training. Pure. */

import type { Job, JobState, TrainingEvent, Version } from "@/shared/api/training";
import { formatCount, formatUsd, pluralize } from "@/shared/format/numbers";

export type Tone = "sea" | "moss" | "sun" | "coral" | "";

interface StatusLabel {
  label: string;
  tone: Tone;
}

const JOB_LABELS: Record<JobState, StatusLabel> = {
  queued: { label: "Queued", tone: "" },
  running: { label: "Training", tone: "sea" },
  paused: { label: "Paused", tone: "sun" },
  done: { label: "Done", tone: "moss" },
  failed: { label: "Failed", tone: "coral" },
  cancelled: { label: "Cancelled", tone: "" },
};

export function jobStatusLabel(job: Pick<Job, "kind" | "state" | "requested_action" | "stop_reason">): StatusLabel {
  if (job.requested_action === "pause") return { label: "Pausing", tone: "sun" };
  if (job.requested_action === "cancel") return { label: "Cancelling", tone: "" };
  if (job.state === "failed" && job.stop_reason === "guard") return { label: "Stopped by a guard", tone: "coral" };
  if (isDistillation(job) && job.state === "running") return { label: "Distilling", tone: "sea" };
  return JOB_LABELS[job.state];
}

/** Return whether the job makes a prompt library from rated runs. */
export function isDistillation(job: Pick<Job, "kind">): boolean {
  return job.kind === "prompt_library";
}

const VERSION_LABELS: Record<Version["state"], StatusLabel> = {
  candidate: { label: "Candidate", tone: "" },
  canary: { label: "Canary", tone: "sun" },
  active: { label: "Active", tone: "moss" },
  retired: { label: "Retired", tone: "" },
  blocked: { label: "Blocked", tone: "coral" },
};

export function versionStateLabel(version: Pick<Version, "state" | "canary_fraction">): StatusLabel {
  const { label, tone } = VERSION_LABELS[version.state];
  const share = version.state === "canary" ? version.canary_fraction : null;
  return { label: share === null ? label : `${label}, ${formatPercent(share)} of new runs`, tone };
}

/** Return why the job ended or is paused, or what it waits for. Empty while it runs. */
export function stopReasonText(job: Job): string {
  if (job.state === "queued") return job.waiting_for;
  if (job.error) return job.error;
  return job.stop_reason && `${job.stop_reason[0]?.toUpperCase()}${job.stop_reason.slice(1)}.`;
}

/** Return the phase of a running job. Empty if the phase is only its training step. */
export function phaseText(job: Pick<Job, "state" | "phase">): string {
  return job.state === "running" && !/^step \d+$/.test(job.phase) ? job.phase : "";
}

/** Return text such as `step 12 of 60`. */
export function trainingStepText(job: Pick<Job, "step" | "config">): string {
  const plannedSteps = job.config.steps;
  return typeof plannedSteps === "number"
    ? `step ${formatCount(job.step)} of ${formatCount(plannedSteps)}`
    : `step ${formatCount(job.step)}`;
}

/** Describe the configuration: the algorithm and the policy that is trained. */
export function jobConfigText(job: Pick<Job, "kind" | "config">): string {
  const { algorithm, policy } = job.config;
  if (isDistillation(job)) return `rated and scored runs, compared by ${engineText(job.config.engine)}`;
  const algorithmText = typeof algorithm === "string" ? algorithm : "custom pipeline";
  return typeof policy === "string" ? `${algorithmText} from ${policy}` : algorithmText;
}

function engineText(engine: unknown): string {
  const { engine: name = "", model = "" } = (engine ?? {}) as { engine?: string; model?: string };
  return model ? `${name}:${model}` : name;
}

/** Return text such as `3,120 tokens, $0.04`. If a price is not known, the cost is a lower bound. */
export function costText(metrics: ReadonlyMap<string, number>): string {
  const tokens = (metrics.get("prompt_tokens") ?? 0) + (metrics.get("completion_tokens") ?? 0);
  const usd = formatUsd(metrics.get("cost_usd") ?? 0);
  return `${pluralize(tokens, "token")}, ${metrics.get("priced") === 0 ? `at least ${usd}` : usd}`;
}

interface LedgerReason {
  label: string;
  description: string;
}

const TRAINING_REASONS: Record<string, LedgerReason> = {
  used: { label: "used", description: "trained on" },
  zero_advantage: { label: "zero advantage", description: "all rollouts of its task had the same reward" },
  stale: { label: "stale", description: "sampled by weights that are too old" },
  zero_weight: { label: "zero weight", description: "the weight of all its tokens is 0" },
  incomplete_group: { label: "incomplete group", description: "too few usable rollouts of its task" },
  truncated: { label: "truncated", description: "longer than the learner's context window" },
  unselected: { label: "not selected", description: "left out by a selector of the pipeline" },
  no_tokens: { label: "no tokens", description: "its engine returned no token ids" },
  not_finite: {
    label: "not finite",
    description: "the gradient of the step was not finite, so the weights did not change",
  },
  infra_error: { label: "platform error", description: "the platform failed, not the policy" },
};

/** Reasons of a distillation job. */
const DISTILLATION_REASONS: Record<string, LedgerReason> = {
  used: { label: "compared", description: "with other runs on its question, or with a correction" },
  zero_advantage: { label: "not compared", description: "no run on its question was rated differently" },
  unselected: { label: "not selected", description: "only the best and the worst on a question are compared" },
};

export function ledgerReason(reason: string, isDistilled = false): LedgerReason {
  return (
    (isDistilled ? DISTILLATION_REASONS[reason] : undefined) ??
    TRAINING_REASONS[reason] ?? { label: reason.replaceAll("_", " "), description: "" }
  );
}

interface EventText {
  label: string;
  tone: Tone;
  /** Details of the event. Empty if there are none. */
  text: string;
}

/** Return the label and the text of an event. */
export function eventText(event: Pick<TrainingEvent, "kind" | "detail">): EventText {
  const detail = (name: string) => (event.detail[name] === undefined ? "" : String(event.detail[name]));
  switch (event.kind) {
    case "created":
      return {
        label: "queued",
        tone: "",
        text: detail("runs") ? `with ${distilledFrom(event)}` : `starts from ${detail("policy")}`,
      };
    case "registered":
      return { label: "registered", tone: "sea", text: detail("policy") };
    case "guard":
      return {
        label: "guard",
        tone: "coral",
        text: `step ${detail("step")}: ${detail("reason")}; rolled back to ${rollbackTarget(event)}`,
      };
    case "not_finite":
      return { label: "not finite", tone: "coral", text: `step ${detail("step")} changed no weights` };
    case "failed":
      return { label: "failed", tone: "coral", text: detail("error") };
    case "gate":
      return gateText(event);
    case "promoted":
      return { label: "promoted", tone: "moss", text: `${detail("policy")}, gate ${detail("gate")}` };
    case "canary":
      return { label: "canary", tone: "sun", text: `${detail("policy")} on ${canaryShareText(event)}new runs` };
    case "canary_withdrawn":
      return { label: "canary withdrawn", tone: "sun", text: `${detail("policy")}: ${detail("reason")}` };
    case "rolled_back":
      return {
        label: "rolled back",
        tone: "sun",
        text: `${detail("policy")} to ${detail("back_to")}: ${detail("reason")}`,
      };
    default:
      return { label: event.kind.replaceAll("_", " "), tone: "", text: detail("policy") };
  }
}

/** Return text such as `4 rated runs and 8 scored rollouts`. Jobs of earlier versions did not distinguish them. */
function distilledFrom({ detail }: Pick<TrainingEvent, "detail">): string {
  const all = Number(detail.runs);
  if (detail.rated_runs === undefined) return `${pluralize(all, "run")} that were rated or scored`;
  const rated = Number(detail.rated_runs);
  const scored = pluralize(all - rated, "scored rollout");
  if (rated === 0) return scored;
  return pluralize(rated, "rated run") + (all > rated ? ` and ${scored}` : "");
}

function rollbackTarget(event: Pick<TrainingEvent, "detail">): string {
  const step = event.detail.back_to_step;
  return step ? `step ${step}` : "the start";
}

function canaryShareText(event: Pick<TrainingEvent, "detail">): string {
  return typeof event.detail.fraction === "number" ? `${formatPercent(event.detail.fraction)} of ` : "a fraction of ";
}

function gateText({ detail }: Pick<TrainingEvent, "detail">): EventText {
  const reasons = Array.isArray(detail.reasons) ? detail.reasons.join("; ") : "";
  const { difference } = detail.comparison as { difference: number };
  const comparison = `against ${detail.active_version}, difference ${formatSigned(difference)}`;
  if (detail.passed === true) return { label: "passed the gate", tone: "moss", text: comparison };
  return { label: "rejected by the gate", tone: "coral", text: reasons || comparison };
}

export function formatPercent(share: number): string {
  return `${+(share * 100).toFixed(1)}%`;
}

/** Return text such as `+0.031`. */
export function formatSigned(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
}

/** Return a metric in about four characters, such as `0.613`, `12.4`, `3.1e-5`. */
export function formatMetric(value: number): string {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 0.001 || size >= 100_000) return value.toExponential(1).replace("-", "−").replace("e−", "e-");
  if (size >= 100) return formatCount(Math.round(value));
  return String(+value.toPrecision(3)).replace("-", "−");
}

/** Return the last characters of an id. The `offing` command accepts them as well. */
export function shortId(id: string): string {
  return id.slice(-8);
}
