/** What a step says, in the person's language. A step without a code that this page knows has its own English texts. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import type { Step, StepSummaryCode } from "@/shared/api/runs";
import { joinParts } from "./lists";
import { formatCount } from "./numbers";
import { STOP_NAMES } from "./stop-names";

export interface StepTexts {
  title: string;
  /** Empty means none. */
  detail: string;
}

type Value = boolean | number | string | number[] | string[];

/** The parameters of a summary. One that a server leaves out, or that has another type, is empty. */
class Parameters {
  constructor(private readonly values: Readonly<Record<string, Value>>) {}

  number(name: string): number {
    const value = this.values[name];
    return typeof value === "number" ? value : 0;
  }

  text(name: string): string {
    const value = this.values[name];
    return typeof value === "string" ? value : "";
  }

  flag(name: string): boolean {
    return this.values[name] === true;
  }

  list(name: string): string {
    const value = this.values[name];
    return Array.isArray(value) ? joinParts(value.map(String)) : "";
  }

  count(name: string): number {
    const value = this.values[name];
    return Array.isArray(value) ? value.length : 0;
  }
}

/** The texts that differ from the step's own, which name what people, models and documents say. */
type Texts = Record<StepSummaryCode, (p: Parameters) => Partial<StepTexts>>;

const VERDICT_COUNTS: Record<string, (count: number) => string> = {
  supported: (count) => t`${count} supported`,
  partly: (count) => t`${count} partly supported`,
  not_found: (count) => t`${count} not found`,
  contradicted: (count) => t`${count} contradicted`,
};

export const FOLLOW_UP_NAMES: Record<string, MessageDescriptor> = {
  question: msg`a question on the report`,
  edit: msg`an edit of the report`,
  research: msg`new research`,
};

const CHOOSERS: Record<string, MessageDescriptor> = {
  person: msg`chosen by you`,
  model: msg`chosen by the model`,
  rules: msg`chosen by rules`,
};

export function name(names: Record<string, MessageDescriptor>, value: string): string {
  const known = Object.hasOwn(names, value) ? names[value] : undefined;
  return known ? i18n._(known) : value;
}

/** Where the content of a tool comes from, and its place among calls that were made at once. */
function withCall(p: Parameters, detail: string): { detail: string } {
  const [origin, number, size] = [p.text("origin"), p.number("number"), p.number("size")];
  return {
    detail: joinParts([
      detail,
      ...(origin ? [t`from ${origin}`] : []),
      ...(size > 0 ? [t`call ${number} of ${size} at once`] : []),
    ]),
  };
}

export const passages = (count: number) => plural(count, { one: "# passage", other: "# passages" });
export const nothingFound = () => t`nothing found`;
export const pages = (count: number) => plural(count, { one: "# page", other: "# pages" });
export const passagesOf = (count: number, sources: number) =>
  joinParts([passages(count), plural(sources, { one: "from # source", other: "from # sources" })]);

const TEXTS: Texts = {
  started: () => ({ title: t`A worker claimed the run` }),
  paused: () => ({ title: t`Paused by a person` }),
  resumed: () => ({ title: t`Resumed by a person` }),
  recovered: (p) => ({
    title: t`Resumed after a worker stopped responding`,
    detail: plural(p.number("count"), {
      one: "# recorded call reused, none repeated",
      other: "# recorded calls reused, none repeated",
    }),
  }),
  forked: (p) => ({
    title: t`Forked from step ${p.number("seq")} of another run`,
    detail: t`Its first ${p.number("seq")} steps were made in run ${p.text("run")} and are read back`,
  }),
  upgraded: (p) => ({
    title: t`Continued with another version of its graph`,
    detail: t`${p.text("before")} to ${p.text("after")}`,
  }),
  ended: (p) => ({ title: t`Ended: ${name(STOP_NAMES, p.text("reason"))}` }),
  messages_read: (p) => ({
    title: plural(p.count("seqs"), { one: "The message was read", other: "# messages were read" }),
    detail: t`of step ${p.list("seqs")}`,
  }),
  plan_changed: (p) => ({ title: t`Plan changed: ${p.list("parts")}` }),
  plan_read: (p) => ({
    title: plural(p.count("parts"), {
      one: "The changed plan was read: # part",
      other: "The changed plan was read: # parts",
    }),
  }),
  plan_edited: () => ({ title: t`The plan was edited` }),
  question_clarified: () => ({ title: t`The question was clarified` }),
  continued: () => ({ title: t`The run continues, because parts of the question are open` }),
  role_skipped: (p) => ({
    title: t`The ${p.text("role")} was not asked again: nothing was found, and no turn is left`,
    detail: t`Any judgment would lead to the same report and the same reason.`,
  }),
  arguments_planned: () => ({ detail: t`The plan named the arguments.` }),
  window_learned: (p) => ({
    title: t`The model of the ${p.text("role")} holds about ${formatCount(p.number("tokens"))} tokens; its prompt is shortened`,
    detail: t`Set context_tokens to avoid this.`,
  }),
  follow_up: (p) => ({
    title: t`Follow-up: ${name(FOLLOW_UP_NAMES, p.text("kind"))}`,
    detail: joinParts([name(CHOOSERS, p.text("chosen_by")), ...(p.text("why") ? [p.text("why")] : [])]),
  }),
  mode_chosen: (p) => ({ title: t`Mode: ${p.text("mode")}` }),
  mode_changed: (p) => ({
    title: t`Continues in the mode ${p.text("mode")}`,
    detail: t`open: ${p.list("parts")}`,
  }),
  verdict: (p) => ({
    detail: joinParts([
      ...(p.number("parts") > 0 ? [t`${p.number("covered")} of ${p.number("parts")} parts answered`] : []),
      p.flag("stop") ? t`stop` : t`continue`,
      ...(p.number("omitted") > 0 ? [t`passages not shown: ${p.number("omitted")}`] : []),
    ]),
  }),
  claims_checked: (p) => ({
    title:
      joinParts(
        Object.entries(VERDICT_COUNTS)
          .filter(([verdict]) => p.number(verdict) > 0)
          .map(([verdict, say]) => say(p.number(verdict))),
      ) || t`no sentence judged`,
    detail:
      p.number("conflicts") > 0
        ? plural(p.number("conflicts"), { one: "# conflict named", other: "# conflicts named" })
        : "",
  }),
  sentences_revised: (p) => ({
    title: t`Sentences: ${p.number("corrected")} corrected, ${p.number("removed")} removed`,
  }),
  questions_to_person: (p) => ({
    title:
      p.number("count") > 0
        ? plural(p.number("count"), { one: "# question to you", other: "# questions to you" })
        : t`Nothing is unclear`,
  }),
  report: (p) => ({
    detail: joinParts([
      t`${p.number("supported")} of ${p.number("sentences")} sentences have a source`,
      plural(p.number("citations"), { one: "# citation", other: "# citations" }),
    ]),
  }),
  memory: (p) => ({ detail: joinParts([passages(p.number("passages")), t`${p.number("fresh")} new`]) }),
  library_searched: (p) =>
    withCall(p, p.number("passages") > 0 ? passagesOf(p.number("passages"), p.number("sources")) : nothingFound()),
  web_searched: (p) => withCall(p, p.number("pages") > 0 ? pages(p.number("pages")) : nothingFound()),
  source_read: (p) => {
    const [start, end, total] = [
      formatCount(p.number("start")),
      formatCount(p.number("end")),
      formatCount(p.number("total")),
    ];
    return withCall(p, t`characters ${start} to ${end} of ${total}`);
  },
  child_run_ended: (p) => ({
    detail: joinParts([name(STOP_NAMES, p.text("reason")), passages(p.number("passages"))]),
  }),
  child_runs_denied: (p) => ({ title: t`No child runs: ${p.text("reason")}` }),
  reports_recalled: (p) => ({
    detail: plural(p.number("sentences"), {
      one: "# sentence of earlier reports",
      other: "# sentences of earlier reports",
    }),
  }),
  notes_recalled: (p) => ({
    title: t`Notes of this thread`,
    detail: plural(p.number("count"), { one: "# note", other: "# notes" }),
  }),
  tool_policy_restricted: () => ({ title: t`Tool policy restricted` }),
  tool_policy_kept: () => ({ title: t`Restriction of the tool policy rejected` }),
};

/** Return the title and the detail of a step. A server that is newer than the page may send codes that it lacks. */
export function stepTexts({ title, detail, summary }: Pick<Step, "title" | "detail" | "summary">): StepTexts {
  const known =
    summary && Object.hasOwn(TEXTS, summary.code) ? TEXTS[summary.code](new Parameters(summary.parameters)) : {};
  return { title, detail, ...known };
}

/** Return the steps of the messages that a step says were read. Empty means that it says so of none. */
export function listReadMessages({ summary }: Pick<Step, "summary">): number[] {
  const seqs = summary?.code === "messages_read" ? summary.parameters.seqs : [];
  return Array.isArray(seqs) ? seqs.filter((seq) => typeof seq === "number") : [];
}

export const KNOWN_CODES: readonly string[] = Object.keys(TEXTS);
