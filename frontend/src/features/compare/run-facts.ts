/** What two runs are compared by, as words. Pure. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { collectionLabel } from "@/shared/api/library";
import type { Report } from "@/shared/api/reports";
import type { RunDetail } from "@/shared/api/runs";
import { joinList } from "@/shared/format/lists";
import { formatCount, formatDuration, formatMs, formatUsd } from "@/shared/format/numbers";
import { runStatusLabel, stopReasonInfo } from "@/shared/format/run-labels";
import { listLines } from "./align-reports";

export interface Fact {
  name: string;
  first: string;
  second: string;
}

export interface FactGroup {
  name: string;
  facts: Fact[];
}

/** Number of characters of a hash that are shown. */
const VERSION_CHARS = 12;

const NONE = "–";

type Describe = (run: RunDetail, report: Report | null) => string;

/** Return the facts of two runs in groups. A fact that neither run has is left out. */
export function compareFacts(
  first: RunDetail,
  second: RunDetail,
  firstReport: Report | null,
  secondReport: Report | null,
): FactGroup[] {
  const fact = (name: string, describe: Describe): Fact => ({
    name,
    first: describe(first, firstReport) || NONE,
    second: describe(second, secondReport) || NONE,
  });
  const groups: FactGroup[] = [
    {
      name: t`Settings`,
      facts: [
        fact(t`Question`, (run) => run.question),
        fact(t`Graph`, (run) => run.graph),
        fact(t`Version of the graph`, (run) => run.graph_version.slice(0, VERSION_CHARS)),
        fact(t`Engines`, describeEngines),
        fact(t`Scope`, describeScope),
        fact(t`Budget`, describeBudget),
        fact(t`Form of the report`, describeStyle),
      ],
    },
    {
      name: t`Outcome`,
      facts: [
        fact(t`State`, (run) => runStatusLabel(run).label),
        fact(t`Why it ended`, (run) => stopReasonInfo(run.stop_reason)?.explanation ?? ""),
        fact(t`Turns`, ({ usage }) => formatCount(usage.turns)),
        fact(t`Steps`, (run) => formatCount(run.last_seq)),
        fact(t`Working time`, ({ usage }) => formatMs(usage.seconds * 1000)),
        fact(t`Tokens`, ({ usage }) => (usage.tokens > 0 ? formatCount(usage.tokens) : "")),
        fact(t`Cost`, ({ usage }) => (usage.cost_usd > 0 ? formatUsd(usage.cost_usd) : "")),
      ],
    },
    {
      name: t`Report`,
      facts: [
        fact(t`Sentences`, (_, report) => count(report, (it) => sentencesOf(it).length)),
        fact(t`Supported`, (_, report) => count(report, (it) => countVerdict(it, "supported"))),
        fact(t`Partly supported`, (_, report) => count(report, (it) => countVerdict(it, "partly"))),
        fact(t`Contradicted`, (_, report) => count(report, (it) => countVerdict(it, "contradicted"))),
        fact(t`Not in the passages`, (_, report) => count(report, (it) => countVerdict(it, "not_found"))),
        fact(t`Without a source`, (_, report) => count(report, (it) => countVerdict(it, null))),
        fact(t`Citations`, (_, report) => count(report, (it) => it.citations.length)),
        fact(t`Cited sources`, (_, report) => count(report, (it) => it.sources.length)),
        fact(t`Conflicts between sources`, (_, report) => count(report, (it) => it.conflicts.length)),
      ],
    },
  ];
  return groups
    .map(({ name, facts }) => ({ name, facts: facts.filter((one) => one.first !== NONE || one.second !== NONE) }))
    .filter(({ facts }) => facts.length > 0);
}

function sentencesOf(report: Report) {
  return listLines(report).flatMap(({ sentence }) => (sentence && sentence.layout !== "header" ? [sentence] : []));
}

function countVerdict(report: Report, verdict: "supported" | "partly" | "contradicted" | "not_found" | null): number {
  return sentencesOf(report).filter((sentence) => sentence.verdict === verdict).length;
}

function count(report: Report | null, of: (report: Report) => number): string {
  return report ? formatCount(of(report)) : "";
}

function describeEngines({ engines }: RunDetail): string {
  const names = Object.entries(engines)
    .sort(([left], [right]) => left.localeCompare(right))
    .map(([role, config]) => ({ role, name: config.model || config.engine }));
  const distinct = [...new Set(names.map(({ name }) => name))];
  if (distinct.length === 0) return t`default engine`;
  if (distinct.length === 1) return distinct[0] ?? "";
  return names.map(({ role, name }) => `${role}: ${name}`).join("\n");
}

function describeScope({ scope }: RunDetail): string {
  const documents = [
    ...scope.collections.map(collectionLabel),
    ...(scope.sources.length > 0 ? [plural(scope.sources.length, { one: "# document", other: "# documents" })] : []),
  ];
  return joinList([
    ...(documents.length > 0 ? documents : [t`the whole library`]),
    ...(scope.web ? [t`the web`] : []),
    ...(scope.code ? [t`code`] : []),
    ...scope.mcp,
  ]);
}

function describeBudget({ budget }: RunDetail): string {
  return joinList([
    plural(budget.max_turns, { one: "# turn", other: "# turns" }),
    ...(budget.max_tokens != null ? [t`${formatCount(budget.max_tokens)} tokens`] : []),
    ...(budget.max_cost_usd != null ? [formatUsd(budget.max_cost_usd)] : []),
    ...(budget.max_seconds != null ? [formatDuration(budget.max_seconds)] : []),
  ]);
}

const LENGTHS: Record<string, MessageDescriptor> = { brief: msg`Brief`, standard: msg`Standard`, long: msg`Long` };

function describeStyle({ report_style: style }: RunDetail): string {
  if (!style) return "";
  const length = style.length ? LENGTHS[style.length] : undefined;
  return [length && i18n._(length), style.language, style.template].filter(Boolean).join("\n");
}

export interface SourceComparison {
  both: ComparedSource[];
  first: ComparedSource[];
  second: ComparedSource[];
}

export interface ComparedSource {
  id: string;
  title: string;
}

/** Return the sources that both reports cite and those that only one of them cites, in the order of the reports. */
export function compareSources(first: Report | null, second: Report | null): SourceComparison {
  const list = (report: Report | null) =>
    (report?.sources ?? []).map((source) => ({ id: source.source_id, title: source.title || source.name }));
  const [left, right] = [list(first), list(second)];
  const leftIds = new Set(left.map(({ id }) => id));
  const rightIds = new Set(right.map(({ id }) => id));
  return {
    both: left.filter(({ id }) => rightIds.has(id)),
    first: left.filter(({ id }) => !rightIds.has(id)),
    second: right.filter(({ id }) => !leftIds.has(id)),
  };
}
