/** Labels of states, ledger reasons and events of training. Pure. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import type { Job, JobDetail, JobState, TrainingEvent, Version } from "@/shared/api/training";
import { joinList } from "@/shared/format/lists";
import { formatCount, formatUsd } from "@/shared/format/numbers";

export type Tone = "sea" | "moss" | "sun" | "coral" | "";

interface StatusLabel {
  label: string;
  tone: Tone;
}

/** The label of a table, before it is translated. */
type Described<T> = Omit<T, "label"> & { label: MessageDescriptor };

const JOB_LABELS: Record<JobState, Described<StatusLabel>> = {
  queued: { label: msg`Queued`, tone: "" },
  running: { label: msg({ message: "Training", context: "state of a job" }), tone: "sea" },
  paused: { label: msg`Paused`, tone: "sun" },
  done: { label: msg`Done`, tone: "moss" },
  failed: { label: msg`Failed`, tone: "coral" },
  cancelled: { label: msg`Cancelled`, tone: "" },
};

export function jobStatusLabel(job: Pick<Job, "kind" | "state" | "requested_action" | "stop_reason">): StatusLabel {
  if (job.requested_action === "pause") return { label: t`Pausing`, tone: "sun" };
  if (job.requested_action === "cancel") return { label: t`Cancelling`, tone: "" };
  if (job.state === "failed" && job.stop_reason === "guard") return { label: t`Stopped by a guard`, tone: "coral" };
  if (isDistillation(job) && job.state === "running") return { label: t`Distilling`, tone: "sea" };
  const { label, tone } = JOB_LABELS[job.state];
  return { label: i18n._(label), tone };
}

/** Return whether the job makes a prompt library from rated runs. */
export function isDistillation(job: Pick<Job, "kind">): boolean {
  return job.kind === "prompt_library";
}

const VERSION_LABELS: Record<Version["state"], Described<StatusLabel>> = {
  candidate: { label: msg`Candidate`, tone: "" },
  canary: { label: msg`Canary`, tone: "sun" },
  active: { label: msg`Active`, tone: "moss" },
  retired: { label: msg`Retired`, tone: "" },
  blocked: { label: msg`Blocked`, tone: "coral" },
};

export function versionStateLabel(version: Pick<Version, "state" | "canary_fraction">): StatusLabel {
  const { label: state, tone } = VERSION_LABELS[version.state];
  const label = i18n._(state);
  const share = version.state === "canary" ? version.canary_fraction : null;
  return { label: share === null ? label : t`${label}, ${formatPercent(share)} of new runs`, tone };
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
export function trainingStepText(job: Pick<Job, "step" | "planned_steps">): string {
  return job.planned_steps === null
    ? t`step ${formatCount(job.step)}`
    : t`step ${formatCount(job.step)} of ${formatCount(Math.max(job.step, job.planned_steps))}`;
}

/** Return text such as `judges: 120 of 5,000 calls, $0.42 of $10.00`. Empty if there are no judges and no budget. */
export function judgesText({ judges }: Pick<JobDetail, "judges">): string {
  const { calls, cost_usd: cost, max_calls: maxCalls, max_cost_usd: maxCost } = judges;
  if (calls === 0 && maxCalls === null && maxCost === null) return "";
  const called =
    maxCalls === null
      ? plural(calls, { one: "# call", other: "# calls" })
      : t`${formatCount(calls)} of ${plural(maxCalls, { one: "# call", other: "# calls" })}`;
  const spent = formatUsd(Number(cost));
  const cents = maxCost === null ? spent : t`${spent} of ${formatUsd(Number(maxCost))}`;
  return t`judges: ${called}, ${cents}`;
}

/** Describe the configuration: the algorithm and the policy that is trained. */
export function jobConfigText(job: Pick<Job, "kind" | "config">): string {
  const { algorithm, policy } = job.config;
  if (isDistillation(job)) return t`rated and scored runs, compared by ${engineText(job.config.engine)}`;
  const algorithmText = typeof algorithm === "string" ? algorithm : t`custom pipeline`;
  return typeof policy === "string" ? t`${algorithmText} from ${policy}` : algorithmText;
}

function engineText(engine: unknown): string {
  const { engine: name = "", model = "" } = (engine ?? {}) as { engine?: string; model?: string };
  return model ? `${name}:${model}` : name;
}

/** Return text such as `3,120 tokens, $0.04`. If a price is not known, the cost is a lower bound. */
export function costText(metrics: ReadonlyMap<string, number>): string {
  const tokens = (metrics.get("prompt_tokens") ?? 0) + (metrics.get("completion_tokens") ?? 0);
  const usd = formatUsd(metrics.get("cost_usd") ?? 0);
  return `${plural(tokens, { one: "# token", other: "# tokens" })}, ${metrics.get("priced") === 0 ? t`at least ${usd}` : usd}`;
}

interface LedgerReason {
  label: string;
  description: string;
}

const TRAINING_REASONS: Record<string, { label: MessageDescriptor; description: MessageDescriptor }> = {
  used: { label: msg`used`, description: msg`trained on` },
  zero_advantage: { label: msg`zero advantage`, description: msg`all rollouts of its task had the same reward` },
  stale: { label: msg`stale`, description: msg`sampled by weights that are too old` },
  zero_weight: { label: msg`zero weight`, description: msg`the weight of all its tokens is 0` },
  incomplete_group: { label: msg`incomplete group`, description: msg`too few usable rollouts of its task` },
  truncated: { label: msg`truncated`, description: msg`longer than the learner's context window` },
  unselected: { label: msg`not selected`, description: msg`left out by a selector of the pipeline` },
  no_tokens: { label: msg`no tokens`, description: msg`its engine returned no token ids` },
  not_finite: {
    label: msg`not finite`,
    description: msg`the gradient of the step was not finite, so the weights did not change`,
  },
  infra_error: { label: msg`platform error`, description: msg`the platform failed, not the policy` },
};

/** Reasons of a distillation job. */
const DISTILLATION_REASONS: Record<string, { label: MessageDescriptor; description: MessageDescriptor }> = {
  used: { label: msg`compared`, description: msg`with other runs on its question, or with a correction` },
  zero_advantage: { label: msg`not compared`, description: msg`no run on its question was rated differently` },
  unselected: { label: msg`not selected`, description: msg`only the best and the worst on a question are compared` },
};

export function ledgerReason(reason: string, isDistilled = false): LedgerReason {
  const known = (isDistilled ? DISTILLATION_REASONS[reason] : undefined) ?? TRAINING_REASONS[reason];
  if (!known) return { label: reason.replaceAll("_", " "), description: "" };
  return { label: i18n._(known.label), description: i18n._(known.description) };
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
  const policy = detail("policy");
  const step = detail("step");
  const reason = detail("reason");
  switch (event.kind) {
    case "created":
      return {
        label: t`queued`,
        tone: "",
        text: detail("runs") ? t`with ${distilledFrom(event)}` : t`starts from ${policy}`,
      };
    case "registered":
      return { label: t`registered`, tone: "sea", text: detail("policy") };
    case "guard":
      return {
        label: t`guard`,
        tone: "coral",
        text: t`step ${step}: ${reason}; rolled back to ${rollbackTarget(event)}`,
      };
    case "not_finite":
      return { label: t`not finite`, tone: "coral", text: t`step ${step} changed no weights` };
    case "failed":
      return { label: t`failed`, tone: "coral", text: detail("error") };
    case "gate":
      return gateText(event);
    case "promoted":
      return { label: t`promoted`, tone: "moss", text: t`${policy}, gate ${detail("gate")}` };
    case "canary":
      return { label: t`canary`, tone: "sun", text: canaryText(event, policy) };
    case "canary_compared":
      return canaryLookText(event);
    case "canary_withdrawn":
      return { label: t`canary withdrawn`, tone: "sun", text: `${detail("policy")}: ${detail("reason")}` };
    case "rolled_back":
      return {
        label: t`rolled back`,
        tone: "sun",
        text: t`${policy} to ${detail("back_to")}: ${reason}`,
      };
    default:
      return { label: event.kind.replaceAll("_", " "), tone: "", text: detail("policy") };
  }
}

/** Return text such as `4 rated runs and 8 scored rollouts`. Jobs of earlier versions did not distinguish them. */
function distilledFrom({ detail }: Pick<TrainingEvent, "detail">): string {
  const all = Number(detail.runs);
  if (detail.rated_runs === undefined)
    return plural(all, { one: "# run that was rated or scored", other: "# runs that were rated or scored" });
  const rated = Number(detail.rated_runs);
  const scored = plural(all - rated, { one: "# scored rollout", other: "# scored rollouts" });
  if (rated === 0) return scored;
  const ratedRuns = plural(rated, { one: "# rated run", other: "# rated runs" });
  return all > rated ? joinList([ratedRuns, scored]) : ratedRuns;
}

function rollbackTarget(event: Pick<TrainingEvent, "detail">): string {
  const step = event.detail.back_to_step;
  return step ? t`step ${String(step)}` : t`the start`;
}

function canaryText({ detail: { fraction } }: Pick<TrainingEvent, "detail">, policy: string): string {
  if (typeof fraction !== "number") return t`${policy} on a fraction of new runs`;
  return t`${policy} on ${formatPercent(fraction)} of new runs`;
}

/** Return text such as `30 tasks of each, against planner@2: difference +0.031, interval −0.200 … +0.262`. */
function canaryLookText({ detail }: Pick<TrainingEvent, "detail">): EventText {
  const tasks = Number(detail.tasks);
  const count = plural(tasks, { one: "# task", other: "# tasks" });
  const difference = formatSigned(Number(detail.difference));
  const interval = `${formatSigned(Number(detail.low))} … ${formatSigned(Number(detail.high))}`;
  const active = String(detail.active_version);
  const text = t`${count} of each, against ${active}: difference ${difference}, interval ${interval}`;
  if (detail.verdict === "better") return { label: t`canary is better`, tone: "moss", text };
  if (detail.verdict === "worse") return { label: t`canary is worse`, tone: "coral", text };
  return { label: t`canary compared`, tone: "", text };
}

function gateText({ detail }: Pick<TrainingEvent, "detail">): EventText {
  const reasons = Array.isArray(detail.reasons) ? detail.reasons.join("; ") : "";
  const { difference } = detail.comparison as { difference: number };
  const comparison = t`against ${String(detail.active_version)}, difference ${formatSigned(difference)}`;
  if (detail.passed === true) return { label: t`passed the gate`, tone: "moss", text: comparison };
  return { label: t`rejected by the gate`, tone: "coral", text: reasons || comparison };
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
