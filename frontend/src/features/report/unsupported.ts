/** Unsupported sentences of a report, and their marks. Pure. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { Report, Sentence } from "@/shared/api/reports";
import { joinParts } from "@/shared/format/lists";

export function listSentences(report: Report): Sentence[] {
  const head = report.answer ? [report.answer] : [];
  return [...head, ...report.sections.flatMap((section) => section.sentences)];
}

export function listUnsupported(report: Report): Sentence[] {
  return listSentences(report).filter((sentence) => !sentence.supported);
}

interface SentenceMark {
  /** A few words after the sentence. */
  label: string;
  /** Why the sentence is marked. */
  reason: string;
}

const OBJECTIONS: Record<string, { label: MessageDescriptor; reason: MessageDescriptor }> = {
  contradicted: {
    label: msg`contradicted`,
    reason: msg`The checker found words that contradict it in a cited passage.`,
  },
  not_found: { label: msg`not in the passages`, reason: msg`The checker did not find it in the cited passages.` },
  partly: { label: msg`partly supported`, reason: msg`The checker found only a part of it in the cited passages.` },
};

/** Return the mark of a sentence whose verdict the checker has lowered. */
function checkerObjection({ judgment, verdict, rule_verdict }: Sentence): SentenceMark | null {
  if (!judgment || verdict === rule_verdict) return null;
  const mark = OBJECTIONS[judgment.verdict];
  if (!mark) return null;
  return { label: i18n._(mark.label), reason: [i18n._(mark.reason), judgment.reason].filter(Boolean).join(" ") };
}

/** Return the mark of a sentence. `null` means that its sources support it. */
export function sentenceMark(sentence: Sentence): SentenceMark | null {
  if (sentence.supported) return null;
  const objection = checkerObjection(sentence);
  if (objection) return objection;
  if (sentence.unsupported_values.length > 0) {
    const values = joinParts(sentence.unsupported_values);
    return {
      label: t`not in the quotes: ${values}`,
      reason: t`The words quoted do not contain ${values}, and no calculation of the run gives it.`,
    };
  }
  if (sentence.passages.length > 0) {
    return {
      label: t`passage only`,
      reason: [t`The sentence names a passage and quotes no words of it.`, ...sentence.rejected].join(" "),
    };
  }
  return {
    label: t`no source`,
    reason:
      sentence.rejected.length > 0
        ? sentence.rejected.join(" ")
        : t`No passage that the run has read supports this sentence. It is marked in every export.`,
  };
}

/** Return whether a source supports a sentence. The header of a table states nothing. */
export function hasSupport(report: Report): boolean {
  return listSentences(report).some((sentence) => sentence.supported && sentence.layout !== "header");
}
