/** The part of a view's state that its address holds. Unknown parameters are dropped. Pure. */

import { REPORT_PARTS, type ReportPart } from "@/features/report/report-parts";
import { LINK_PROBLEMS, type LinkProblem } from "@/features/session/link-problems";

export const TABS = ["timeline", "state", "sources", "report", "tokens"] as const;
export type Tab = (typeof TABS)[number];

export interface RunSearch {
  tab?: Tab;
  /** Sequence number of the selected step. */
  step?: number;
  /** Step marks that the timeline is filtered by. */
  only?: string;
  /** Numbers of the pinned citations. */
  cite?: number[];
  /** Part of the report tab. Absent: the text. */
  part?: ReportPart;
  /** Version of the report. Absent: the latest. */
  version?: number;
}

function parsePositiveInteger(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}

export function runSearch(raw: Record<string, unknown>): RunSearch {
  const tab = TABS.find((name) => name === raw.tab);
  const step = parsePositiveInteger(raw.step);
  const only = typeof raw.only === "string" && /^[psrcmvwfhn]+$/.test(raw.only) ? raw.only : undefined;
  const cite = Array.isArray(raw.cite)
    ? raw.cite.map(parsePositiveInteger).filter((number) => number !== undefined)
    : [];
  const part = REPORT_PARTS.find((name) => name === raw.part);
  const version = parsePositiveInteger(raw.version);
  return {
    ...(tab && { tab }),
    ...(step && { step }),
    ...(only && { only }),
    ...(cite.length > 0 && { cite }),
    ...(part && { part }),
    ...(version && { version }),
  };
}

/** Maximum length of a search text in an address. */
const MAX_SEARCH_CHARS = 500;

function parseText(value: unknown): string | undefined {
  // A text of digits alone is parsed as a number.
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && text.trim() !== "" ? text.slice(0, MAX_SEARCH_CHARS) : undefined;
}

export interface RunsSearch {
  /** Text that the questions of the listed runs contain. */
  q?: string;
}

export function runsSearch(raw: Record<string, unknown>): RunsSearch {
  const q = parseText(raw.q);
  return q ? { q } : {};
}

export interface HomeSearch extends RunsSearch {
  /** A question that is put into the form. Nothing is sent. */
  ask?: string;
}

export function homeSearch(raw: Record<string, unknown>): HomeSearch {
  const ask = parseText(raw.ask);
  return { ...runsSearch(raw), ...(ask && { ask }) };
}

export interface SignInSearch {
  /** Why the login link could not be used. */
  link?: LinkProblem;
}

export function signInSearch(raw: Record<string, unknown>): SignInSearch {
  const link = LINK_PROBLEMS.find((problem) => problem === raw.link);
  return link ? { link } : {};
}

export interface LibrarySearch {
  source?: string;
  collection?: string;
  /** Text that names and passages are searched for. */
  q?: string;
}

export function librarySearch(raw: Record<string, unknown>): LibrarySearch {
  return {
    ...(typeof raw.source === "string" && { source: raw.source }),
    ...(typeof raw.collection === "string" && { collection: raw.collection }),
    ...runsSearch(raw),
  };
}

export interface TrainingSearch {
  job?: string;
  /** Name of the policy whose versions are shown. */
  policy?: string;
  /** Name of the prompt library whose distillation form is shown. */
  distill?: string;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export function trainingSearch(raw: Record<string, unknown>): TrainingSearch {
  const policy = typeof raw.policy === "string" && raw.policy !== "" ? raw.policy : undefined;
  const job = typeof raw.job === "string" && /^[0-9a-f-]{36}$/.test(raw.job) ? raw.job : undefined;
  const distill = typeof raw.distill === "string" && NAME.test(raw.distill) ? raw.distill : undefined;
  if (policy) return { policy };
  return distill ? { distill: distill } : { ...(job && { job }) };
}
