/** What the server says of the sentences of a report: verdicts, and the reasons why a sentence is marked. Pure. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { Report, Sentence, Verdict } from "@/shared/api/reports";
import { joinParts } from "@/shared/format/lists";
import { sayText } from "@/shared/texts/coded-text";
import { REJECTION_TEXTS } from "@/shared/texts/report-texts";
import type { Tone } from "@/shared/ui/badge";

export const VERDICTS: readonly Verdict[] = ["supported", "partly", "not_found", "contradicted", "conclusion"];

export const VERDICT_LABELS: Record<Verdict, { label: MessageDescriptor; tone: Tone }> = {
  supported: { label: msg`Supported`, tone: "moss" },
  partly: { label: msg`Partly supported`, tone: "sun" },
  not_found: { label: msg`Not found`, tone: "sun" },
  contradicted: { label: msg`Contradicted`, tone: "coral" },
  conclusion: { label: msg`Conclusion`, tone: "neutral" },
};

export function listSentences(report: Report): Sentence[] {
  const head = report.answer ? [report.answer] : [];
  return [...head, ...report.sections.flatMap((section) => section.sentences)];
}

/** Return the sentences that neither a source supports nor follow from sentences that one does. */
export function listUnsupported(report: Report): Sentence[] {
  return listSentences(report).filter(({ supported, verdict }) => !supported && verdict !== "conclusion");
}

/** Return the sentences that a conclusion follows from. */
export function listPremises(report: Report, { follows_from: ids }: Sentence): Sentence[] {
  return listSentences(report).filter((sentence) => ids.includes(sentence.id));
}

/** Return the sentences that cite something, and the conclusions from them. Each has a verdict. */
export function listClaims(report: Report): Sentence[] {
  return listSentences(report).filter((sentence) => sentence.verdict !== null);
}

interface SentenceMark {
  /** A few words after the sentence. */
  label: string;
  /** Why the sentence is marked. */
  reason: string;
  /** Whether it is a conclusion, which lacks nothing. */
  isConclusion: boolean;
}

const MAX_LABEL_CHARS = 60;

/** Return why a sentence is not supported. What a checker says is in its own words. Empty means that it is. */
export function sentenceReasons(sentence: Sentence): string[] {
  return sentence.supported || sentence.verdict === "conclusion"
    ? []
    : [...ruleReasons(sentence), ...checkerReasons(sentence)];
}

const OBJECTIONS: Record<Verdict, MessageDescriptor> = {
  supported: msg`supported`,
  partly: msg`partly supported`,
  not_found: msg`not found`,
  contradicted: msg`contradicted`,
  conclusion: msg`conclusion`,
};

function ruleReasons(sentence: Sentence): string[] {
  const { rule_verdict: verdict, citations, passages, unsupported_values: values } = sentence;
  const { rejected, rejected_texts: texts } = sentence;
  if (verdict === "supported") return [];
  if (citations.length > 0) return [t`not in the quotes: ${joinParts(values)}`];
  const first = passages.length > 0 ? t`passage only, no words quoted` : t`no source`;
  return [first, ...rejected.map((text, number) => sayText(REJECTION_TEXTS, text, texts[number]))];
}

function checkerReasons({ judgment }: Sentence): string[] {
  if (!judgment || judgment.verdict === "supported") return [];
  const verdict = i18n._(OBJECTIONS[judgment.verdict]);
  const passage = judgment.contradiction === null ? "" : `[${judgment.contradiction}]`;
  const objection = passage ? t`checker: ${verdict} by ${passage}` : t`checker: ${verdict}`;
  return [judgment.reason ? `${objection}: ${judgment.reason}` : objection];
}

/** Return the mark of a sentence. `null` means that its sources support it. */
export function sentenceMark(sentence: Sentence): SentenceMark | null {
  const { supported, verdict } = sentence;
  if (supported) return null;
  if (verdict === "conclusion") {
    const reason = t`It cites nothing, and follows from sentences that do. Nobody has checked that it follows.`;
    return { label: t`conclusion`, reason, isConclusion: true };
  }
  const reasons = sentenceReasons(sentence);
  const [first = ""] = reasons;
  const label = first.length > MAX_LABEL_CHARS ? `${first.slice(0, MAX_LABEL_CHARS).trimEnd()}…` : first;
  return { label, reason: reasons.join("; "), isConclusion: false };
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
