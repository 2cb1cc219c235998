/** Which sentences of a report stand on nothing. Pure. */

import type { Report, Sentence } from "@/shared/api/reports";

export function allSentences(report: Report): Sentence[] {
  const head = report.answer ? [report.answer] : [];
  return [...head, ...report.sections.flatMap((section) => section.sentences)];
}

export function unsupported(report: Report): Sentence[] {
  return allSentences(report).filter((sentence) => !sentence.supported);
}
