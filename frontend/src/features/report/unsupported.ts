/** Unsupported sentences of a report, and their marks. Pure. */

import type { Report, Sentence } from "@/shared/api/reports";

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

/** Return the mark of a sentence. `null` means that its sources support it. */
export function sentenceMark(sentence: Sentence): SentenceMark | null {
  if (sentence.supported) return null;
  if (sentence.unsupported_values.length > 0) {
    const values = sentence.unsupported_values.join(", ");
    return {
      label: `not in the quotes: ${values}`,
      reason: `The words quoted do not contain ${values}, and no calculation of the run gives it.`,
    };
  }
  if (sentence.passages.length > 0) {
    return {
      label: "passage only",
      reason: ["The sentence names a passage and quotes no words of it.", ...sentence.rejected].join(" "),
    };
  }
  return {
    label: "no source",
    reason:
      sentence.rejected.length > 0
        ? sentence.rejected.join(" ")
        : "No passage that the run has read supports this sentence. It is marked in every export.",
  };
}

/** Return whether a source supports a sentence. The header of a table states nothing. */
export function hasSupport(report: Report): boolean {
  return listSentences(report).some((sentence) => sentence.supported && sentence.layout !== "header");
}
