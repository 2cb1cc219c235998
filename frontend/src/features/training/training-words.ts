/** What states, reasons and decisions of training are called. The only home of these sentences. Pure. */

import type { Job, JobState, TrainingEvent, Version } from "@/shared/api/training";
import { count, counted, money } from "@/shared/format/numbers";

export type Tone = "sea" | "moss" | "sun" | "coral" | "";

interface Wording {
  word: string;
  tone: Tone;
}

const JOB: Record<JobState, Wording> = {
  queued: { word: "Queued", tone: "" },
  running: { word: "Training", tone: "sea" },
  paused: { word: "Paused", tone: "sun" },
  done: { word: "Done", tone: "moss" },
  failed: { word: "Failed", tone: "coral" },
  cancelled: { word: "Cancelled", tone: "" },
};

export function jobWording(job: Pick<Job, "kind" | "state" | "wish" | "stop_reason">): Wording {
  if (job.wish === "pause") return { word: "Pausing", tone: "sun" };
  if (job.wish === "cancel") return { word: "Cancelling", tone: "" };
  if (job.state === "failed" && job.stop_reason === "guard") return { word: "Stopped by a guard", tone: "coral" };
  if (learns(job) && job.state === "running") return { word: "Learning", tone: "sea" };
  return JOB[job.state];
}

/** True of a job that makes a prompt library out of rated runs. */
export function learns(job: Pick<Job, "kind">): boolean {
  return job.kind === "prompts";
}

const VERSION: Record<Version["state"], Wording> = {
  candidate: { word: "Candidate", tone: "" },
  canary: { word: "Canary", tone: "sun" },
  active: { word: "Active", tone: "moss" },
  retired: { word: "Retired", tone: "" },
  bad: { word: "Bad", tone: "coral" },
};

export function versionWording(version: Pick<Version, "state" | "canary_share">): Wording {
  const { word, tone } = VERSION[version.state];
  const share = version.state === "canary" ? version.canary_share : null;
  return { word: share === null ? word : `${word}, ${percent(share)} of new runs`, tone };
}

/** Why it ended or rests, or what it waits for; empty while it works. */
export function whyWords(job: Job): string {
  if (job.state === "queued") return job.waits_for;
  if (job.error) return job.error;
  return job.stop_reason && `${job.stop_reason[0]?.toUpperCase()}${job.stop_reason.slice(1)}.`;
}

/** What it does at the moment. Empty: nothing, or no more than that it is at its step. */
export function doingWords(job: Pick<Job, "state" | "phase">): string {
  return job.state === "running" && !/^step \d+$/.test(job.phase) ? job.phase : "";
}

/** `step 12 of 60`. */
export function stepWords(job: Pick<Job, "step" | "config">): string {
  const planned = job.config.steps;
  return typeof planned === "number" ? `step ${count(job.step)} of ${count(planned)}` : `step ${count(job.step)}`;
}

/** What the job was asked for: an algorithm, or what it does to which version. */
export function askedWords(job: Pick<Job, "kind" | "config">): string {
  const { algorithm, policy } = job.config;
  if (learns(job)) return `rated and scored runs, compared by ${engineWords(job.config.engine)}`;
  const what = typeof algorithm === "string" ? algorithm : "own chain";
  return typeof policy === "string" ? `${what} from ${policy}` : what;
}

function engineWords(engine: unknown): string {
  const { engine: name = "", model = "" } = (engine ?? {}) as { engine?: string; model?: string };
  return model ? `${name}:${model}` : name;
}

/** `3,120 tokens, $0.04`; a price that is not known makes it a lower bound. */
export function costWords(figures: ReadonlyMap<string, number>): string {
  const tokens = (figures.get("prompt_tokens") ?? 0) + (figures.get("completion_tokens") ?? 0);
  const usd = money(figures.get("usd") ?? 0);
  return `${counted(tokens, "token")}, ${figures.get("priced") === 0 ? `at least ${usd}` : usd}`;
}

interface Reason {
  word: string;
  why: string;
}

const REASONS: Record<string, Reason> = {
  kept: { word: "trained on", why: "its tokens moved the weights" },
  zero_advantage: { word: "nothing to learn", why: "every attempt at its task was worth the same" },
  stale: { word: "too old", why: "made by weights too far behind" },
  ratio: { word: "too far off", why: "the weights have moved too far from those that made it" },
  short_group: { word: "short group", why: "too few attempts at its task ended" },
  truncated: { word: "cut off", why: "longer than the learner's window" },
  unselected: { word: "not chosen", why: "the chain's selection left it out" },
  no_tokens: { word: "no tokens", why: "its engine gave no token ids" },
  not_finite: { word: "not finite", why: "the step's gradient was no number, so nothing moved" },
  infra_error: { word: "platform failed", why: "an attempt that the platform broke, not the policy" },
};

/** Of a job that learns. */
const LEARNED: Record<string, Reason> = {
  kept: { word: "compared", why: "with others on its question, or with a person's correction" },
  zero_advantage: { word: "not compared", why: "nothing on its question was judged otherwise" },
  unselected: { word: "in between", why: "only the best and the worst on a question are compared" },
};

export function reasonWords(reason: string, learned = false): Reason {
  return (learned ? LEARNED[reason] : undefined) ?? REASONS[reason] ?? { word: reason.replaceAll("_", " "), why: "" };
}

interface Decision {
  word: string;
  tone: Tone;
  /** What it was about. Empty: the word says all. */
  text: string;
}

/** A decision as a sentence. */
export function eventWords(event: Pick<TrainingEvent, "kind" | "detail">): Decision {
  const told = (name: string) => (event.detail[name] === undefined ? "" : String(event.detail[name]));
  switch (event.kind) {
    case "created":
      return {
        word: "queued",
        tone: "",
        text: told("runs") ? `with ${learnedFrom(event)}` : `to begin from ${told("policy")}`,
      };
    case "registered":
      return { word: "registered", tone: "sea", text: told("policy") };
    case "guard":
      return { word: "guard", tone: "coral", text: `step ${told("step")}: ${told("why")}; back to ${backTo(event)}` };
    case "not_finite":
      return { word: "not finite", tone: "coral", text: `step ${told("step")} moved nothing` };
    case "failed":
      return { word: "failed", tone: "coral", text: told("error") };
    case "gate":
      return gateWords(event);
    case "promoted":
      return { word: "promoted", tone: "moss", text: `${told("policy")}, gate ${told("gate")}` };
    case "canary":
      return { word: "canary", tone: "sun", text: `${told("policy")} on ${sharePart(event)}new runs` };
    case "canary_taken_back":
      return { word: "canary taken back", tone: "sun", text: `${told("policy")}: ${told("why")}` };
    case "rolled_back":
      return { word: "rolled back", tone: "sun", text: `${told("policy")} to ${told("back_to")}: ${told("why")}` };
    default:
      return { word: event.kind.replaceAll("_", " "), tone: "", text: told("policy") };
  }
}

/** `4 rated runs and 8 scored rollouts`; jobs of earlier versions did not tell them apart. */
function learnedFrom({ detail }: Pick<TrainingEvent, "detail">): string {
  const all = Number(detail.runs);
  if (detail.rated_runs === undefined) return `${counted(all, "run")} that were rated or scored`;
  const rated = Number(detail.rated_runs);
  const scored = counted(all - rated, "scored rollout");
  if (rated === 0) return scored;
  return counted(rated, "rated run") + (all > rated ? ` and ${scored}` : "");
}

function backTo(event: Pick<TrainingEvent, "detail">): string {
  const step = event.detail.back_to_step;
  return step ? `step ${step}` : "where it began";
}

function sharePart(event: Pick<TrainingEvent, "detail">): string {
  return typeof event.detail.share === "number" ? `${percent(event.detail.share)} of ` : "a share of ";
}

function gateWords({ detail }: Pick<TrainingEvent, "detail">): Decision {
  const why = Array.isArray(detail.why_not) ? detail.why_not.join("; ") : "";
  const against = `against ${detail.champion}, difference ${signed(Number(detail.difference))}`;
  if (detail.passed === true) return { word: "passed the gate", tone: "moss", text: against };
  return { word: "held at the gate", tone: "coral", text: why || against };
}

export function percent(share: number): string {
  return `${+(share * 100).toFixed(1)} %`;
}

/** `+0.031`. */
export function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
}

/** A figure in about four characters: `0.613`, `12.4`, `3.1e-5`. */
export function figure(value: number): string {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 0.001 || size >= 100_000) return value.toExponential(1).replace("-", "−").replace("e−", "e-");
  if (size >= 100) return count(Math.round(value));
  return String(+value.toPrecision(3)).replace("-", "−");
}

/** The last characters of an id, by which `offing` takes it as well. */
export function shortId(id: string): string {
  return id.slice(-8);
}
