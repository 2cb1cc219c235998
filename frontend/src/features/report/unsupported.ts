/** Unsupported sentences of a report. Pure. */

import type { Report, Sentence } from "@/shared/api/reports";

export function listSentences(report: Report): Sentence[] {
  const head = report.answer ? [report.answer] : [];
  return [...head, ...report.sections.flatMap((section) => section.sentences)];
}

export function listUnsupported(report: Report): Sentence[] {
  return listSentences(report).filter((sentence) => !sentence.supported);
}
