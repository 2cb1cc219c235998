/** Who wrote a report, who judged its claims, and who looked for conflicts between its sources. */

import { t } from "@lingui/core/macro";
import type { Schemas } from "../api/client";
import { type CodedText, sayText, type TextsByCode } from "./coded-text";

type ReportTextCode = Extract<Schemas["RunTextCode"], `${"author" | "judged" | "checker" | "conflicts"}_${string}`>;

export const REPORT_TEXTS: TextsByCode<ReportTextCode> = {
  author_extractive: () => t`the extractive engine`,
  author_graph: () => t`the graph's own writer, without a model`,
  judged_by_rules: () => t`The verdicts are given by rules, which compare each sentence with its quotes.`,
  checker_failed: ({ reason }) => t`The verdicts are given by rules alone. The checker judged no sentence: ${reason}`,
  judged_by_checker: ({ checker, judged, claims }) =>
    t`The verdicts are given by rules and by ${checker}, which judged ${judged} of ${claims} sentences.`,
  judged_in_part: ({ checker, judged, claims, reason }) =>
    t`The verdicts are given by rules and by ${checker}, which judged ${judged} of ${claims} sentences. It did not judge the others: ${reason}`,
  judged_unverified: ({ checker, judged, claims, unverified }) =>
    t`The verdicts are given by rules and by ${checker}, which judged ${judged} of ${claims} sentences. Contradictions or conflicts that it named in words that no passage contains: ${unverified}.`,
  judged_in_part_unverified: ({ checker, judged, claims, reason, unverified }) =>
    t`The verdicts are given by rules and by ${checker}, which judged ${judged} of ${claims} sentences. It did not judge the others: ${reason} Contradictions or conflicts that it named in words that no passage contains: ${unverified}.`,
  conflicts_one_source: () =>
    t`Conflicts between sources were not looked for, because fewer than two sources are cited.`,
  conflicts_by_rules: () =>
    t`Conflicts between sources were looked for only by rules, which find two quotes that say the same with another number or date.`,
  conflicts_by_rules_none: () =>
    t`Conflicts between sources were looked for only by rules, which find two quotes that say the same with another number or date. None was found.`,
  conflicts_by_checker: ({ checker }) =>
    t`Conflicts between sources were looked for by ${checker}, and by rules, which find two quotes that say the same with another number or date.`,
  conflicts_by_checker_none: ({ checker }) =>
    t`Conflicts between sources were looked for by ${checker}, and by rules, which find two quotes that say the same with another number or date. None was found.`,
  conflicts_in_groups: ({ checker, groups }) =>
    t`Conflicts between sources were looked for by ${checker} within each of ${groups} groups of sentences, and by rules, which find two quotes that say the same with another number or date.`,
  conflicts_in_groups_none: ({ checker, groups }) =>
    t`Conflicts between sources were looked for by ${checker} within each of ${groups} groups of sentences, and by rules, which find two quotes that say the same with another number or date. None was found.`,
};

/** Why a citation of a sentence was rejected. */
export const REJECTION_TEXTS: TextsByCode<Schemas["RejectionTextCode"]> = {
  source_unnamed: () => t`An unnamed source was not retrieved in this run.`,
  source_not_retrieved: ({ evidence }) => t`${evidence} was not retrieved in this run.`,
  text_missing: ({ evidence }) => t`The stored text of ${evidence} is not available.`,
  quote_not_found: ({ evidence, quote }) => t`The quoted words are not in ${evidence}: “${quote}”`,
};

interface Described {
  author: string;
  judged_by: string;
  conflict_search: string;
  texts: Record<string, CodedText>;
}

/** Return one of the texts about a report. Empty means that it has none. */
export function reportText(report: Described, name: "author" | "judged_by" | "conflict_search"): string {
  return sayText(REPORT_TEXTS, report[name], report.texts[name]);
}
