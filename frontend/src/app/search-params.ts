/** The part of a view's state that its address holds. Unknown parameters are dropped. Pure. */

import { REPORT_PARTS, type ReportPart } from "@/features/report/report-parts";
import { LINK_PROBLEMS, type LinkProblem } from "@/features/session/link-problems";
import { RUN_ORDERS, type RunListFilter } from "@/shared/api/runs";

export const TABS = ["timeline", "state", "graph", "sources", "report", "cost", "tokens"] as const;
export type Tab = (typeof TABS)[number];

export interface RunSearch {
  tab?: Tab;
  /** Sequence number of the selected step. */
  step?: number;
  /** Step marks that the timeline is filtered by. */
  only?: string;
  /** Text that is searched for in the steps. */
  q?: string;
  /** Node of the graph whose steps the timeline shows. */
  node?: string;
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

/** Maximum length of a search text in an address. */
const MAX_SEARCH_CHARS = 500;
/** Maximum length of a question, which the form and the server have too. */
const MAX_QUESTION_CHARS = 8000;

/** Maximum length of a text that the server searches for in steps. */
export const MAX_STEP_SEARCH_CHARS = 200;

function parseText(value: unknown, maxChars = MAX_SEARCH_CHARS): string | undefined {
  // A text of digits alone is parsed as a number.
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && text.trim() !== "" ? text.slice(0, maxChars) : undefined;
}

export function runSearch(raw: Record<string, unknown>): RunSearch {
  const tab = TABS.find((name) => name === raw.tab);
  const step = parsePositiveInteger(raw.step);
  const only = typeof raw.only === "string" && /^[psrcmvwfhn]+$/.test(raw.only) ? raw.only : undefined;
  const q = parseText(raw.q)?.slice(0, MAX_STEP_SEARCH_CHARS);
  const node = parseText(raw.node)?.slice(0, MAX_STEP_SEARCH_CHARS);
  const cite = Array.isArray(raw.cite)
    ? raw.cite.map(parsePositiveInteger).filter((number) => number !== undefined)
    : [];
  const part = REPORT_PARTS.find((name) => name === raw.part);
  const version = parsePositiveInteger(raw.version);
  return {
    ...(tab && { tab }),
    ...(step && { step }),
    ...(only && { only }),
    ...(q && { q }),
    ...(node && { node }),
    ...(cite.length > 0 && { cite }),
    ...(part && { part }),
    ...(version && { version }),
  };
}

/** Maximum length of the words for which runs are searched, as the server has it. */
const MAX_RUN_QUERY_CHARS = 200;

export interface RunsSearch {
  /** Text that the questions of the listed runs contain. */
  q?: string;
}

export function runsSearch(raw: Record<string, unknown>): RunsSearch {
  const q = parseText(raw.q);
  return q ? { q } : {};
}

const RUN_STATES = ["waiting", "active", "failed", "ended"] as const;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface RunListSearch extends RunListFilter {
  /** All runs that match a search, and not only the first with passages of documents. */
  all?: boolean;
}

function parseDay(value: unknown): string | undefined {
  return typeof value === "string" && DAY.test(value) && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

export function runListSearch(raw: Record<string, unknown>): RunListSearch {
  const [graph, tag] = [parseText(raw.graph)?.slice(0, 100), parseText(raw.tag)?.slice(0, 50)];
  const [from, until] = [parseDay(raw.from), parseDay(raw.until)];
  const state = RUN_STATES.find((name) => name === raw.state);
  const cites = typeof raw.cites === "string" && UUID.test(raw.cites) ? raw.cites : undefined;
  const q = parseText(raw.q)?.slice(0, MAX_RUN_QUERY_CHARS);
  const order = RUN_ORDERS.find((name) => name === raw.order);
  const isPossible = q ? order === "newest" : order !== "best" && order !== "newest";
  return {
    ...(q && { q }),
    ...(order && isPossible && { order }),
    ...(state && { state }),
    ...(graph && { graph }),
    ...(tag && { tag }),
    ...(raw.pinned === true && { pinned: true }),
    ...(raw.archived === true && { archived: true }),
    ...(from && { from }),
    ...(until && (!from || from <= until) && { until }),
    ...(cites && { cites }),
    ...(raw.all === true && { all: true }),
  };
}

export interface CompareSearch {
  /** Ids of the two runs. Absent means that one is to be chosen. */
  a?: string;
  b?: string;
}

export function compareSearch(raw: Record<string, unknown>): CompareSearch {
  const [a, b] = [raw.a, raw.b].map((id) => (typeof id === "string" && UUID.test(id) ? id : undefined));
  return { ...(a && { a }), ...(b && b !== a && { b }) };
}

export interface HomeSearch extends RunsSearch {
  /** A question that is put into the form. Nothing is sent. */
  ask?: string;
  /** Id of a question preset that the form gets its options from. */
  preset?: string;
}

export function homeSearch(raw: Record<string, unknown>): HomeSearch {
  const ask = parseText(raw.ask, MAX_QUESTION_CHARS);
  const preset = typeof raw.preset === "string" && UUID.test(raw.preset) ? raw.preset : undefined;
  return { ...runsSearch(raw), ...(ask && { ask }), ...(preset && { preset }) };
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
  const job = typeof raw.job === "string" && UUID.test(raw.job) ? raw.job : undefined;
  const distill = typeof raw.distill === "string" && NAME.test(raw.distill) ? raw.distill : undefined;
  if (policy) return { policy };
  return distill ? { distill: distill } : { ...(job && { job }) };
}
