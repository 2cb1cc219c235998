/** What the server says of the sentences of a report: verdicts, and the reasons why a sentence is marked. Pure. */

import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { Report, Sentence, Verdict } from "@/shared/api/reports";
import type { Tone } from "@/shared/ui/badge";

export const VERDICTS: readonly Verdict[] = ["supported", "partly", "not_found", "contradicted"];

export const VERDICT_LABELS: Record<Verdict, { label: MessageDescriptor; tone: Tone }> = {
  supported: { label: msg`Supported`, tone: "moss" },
  partly: { label: msg`Partly supported`, tone: "sun" },
  not_found: { label: msg`Not found`, tone: "sun" },
  contradicted: { label: msg`Contradicted`, tone: "coral" },
};

export function listSentences(report: Report): Sentence[] {
  const head = report.answer ? [report.answer] : [];
  return [...head, ...report.sections.flatMap((section) => section.sentences)];
}

export function listUnsupported(report: Report): Sentence[] {
  return listSentences(report).filter((sentence) => !sentence.supported);
}

/** Return the sentences that cite something. Each has a verdict. */
export function listClaims(report: Report): Sentence[] {
  return listSentences(report).filter((sentence) => sentence.verdict !== null);
}

interface SentenceMark {
  /** A few words after the sentence. */
  label: string;
  /** Why the sentence is marked. */
  reason: string;
}

const MAX_LABEL_CHARS = 60;

/** Return the mark of a sentence in the words of the server. `null` means that its sources support it. */
export function sentenceMark({ supported, reasons }: Sentence): SentenceMark | null {
  if (supported) return null;
  const [first = ""] = reasons;
  const label = first.length > MAX_LABEL_CHARS ? `${first.slice(0, MAX_LABEL_CHARS).trimEnd()}…` : first;
  return { label, reason: reasons.join("; ") };
}

/** Return whether a source supports a sentence. The header of a table states nothing. */
export function hasSupport(report: Report): boolean {
  return listSentences(report).some((sentence) => sentence.supported && sentence.layout !== "header");
}

/** Show a sentence in the text of the report. It becomes the target, so that screen readers continue there. */
export function jumpToSentence(sentenceId: string): void {
  const element = document.getElementById(`sentence-${sentenceId}`);
  element?.scrollIntoView({ block: "center" });
  element?.focus({ preventScroll: true });
}
