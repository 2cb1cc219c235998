/** Two reports sentence by sentence, aligned so that equal sentences stand beside each other. Pure. */

import { diffArrays, diffWordsWithSpace } from "diff";
import type { Report, Sentence } from "@/shared/api/reports";

export interface ReportLine {
  text: string;
  /** `null` for a heading. */
  sentence: Sentence | null;
}

/** A part of a sentence. `isOwn` means that the other report's sentence does not have these words. */
export interface TextPart {
  text: string;
  isOwn: boolean;
}

export interface AlignedRow {
  kind: "same" | "changed" | "first" | "second";
  first: ReportLine | null;
  second: ReportLine | null;
  /** The words of a changed sentence in each report. Empty unless `kind` is `changed`. */
  firstParts: TextPart[];
  secondParts: TextPart[];
}

/** Maximum number of sentences that are inserted or removed. Reports that differ more are not aligned. */
const MAX_EDITS = 2_000;

/** Fraction of the words that two sentences must share to count as versions of one. */
const MIN_SIMILARITY = 0.5;

/** Return the title, short answer, headings and sentences of a report in reading order. */
export function listLines(report: Report): ReportLine[] {
  const heading = (text: string): ReportLine[] => (text ? [{ text, sentence: null }] : []);
  const line = (sentence: Sentence): ReportLine => ({ text: sentence.text, sentence });
  return [
    ...heading(report.title),
    ...(report.answer ? [line(report.answer)] : []),
    ...report.sections.flatMap((section) => [...heading(section.heading), ...section.sentences.map(line)]),
  ];
}

export function alignReports(first: Report, second: Report): AlignedRow[] {
  const [left, right] = [listLines(first), listLines(second)];
  const options = { comparator: isSameLine, maxEditLength: MAX_EDITS };
  const chunks = diffArrays(left, right, options) ?? [
    { value: left, added: false, removed: true, count: left.length },
    { value: right, added: true, removed: false, count: right.length },
  ];
  const rows: AlignedRow[] = [];
  /** Number of lines of the first report that were read. */
  let at = 0;
  let removed: ReportLine[] = [];
  let added: ReportLine[] = [];
  const flush = () => {
    rows.push(...pairLines(removed, added));
    [removed, added] = [[], []];
  };
  for (const chunk of chunks) {
    if (chunk.removed) {
      removed.push(...chunk.value);
      at += chunk.value.length;
    } else if (chunk.added) added.push(...chunk.value);
    else {
      flush();
      // A chunk has the lines of one of the reports. Those of the other have other citations.
      const start = at;
      chunk.value.forEach((line, nth) => {
        rows.push(row("same", left[start + nth] ?? line, line));
      });
      at += chunk.value.length;
    }
  }
  flush();
  return rows;
}

function isSameLine(left: ReportLine, right: ReportLine): boolean {
  return left.text === right.text && (left.sentence === null) === (right.sentence === null);
}

function row(kind: AlignedRow["kind"], first: ReportLine | null, second: ReportLine | null): AlignedRow {
  return { kind, first, second, firstParts: [], secondParts: [] };
}

/** Put lines that replace each other side by side: those that share most of their words. */
function pairLines(removed: readonly ReportLine[], added: readonly ReportLine[]): AlignedRow[] {
  const rows: AlignedRow[] = [];
  let next = 0;
  for (const line of removed) {
    const match = added.findIndex((other, index) => index >= next && isVersion(line, other));
    if (match < 0) {
      rows.push(row("first", line, null));
      continue;
    }
    for (const other of added.slice(next, match)) rows.push(row("second", null, other));
    rows.push(changedRow(line, added[match] ?? line));
    next = match + 1;
  }
  for (const other of added.slice(next)) rows.push(row("second", null, other));
  return rows;
}

function isVersion(left: ReportLine, right: ReportLine): boolean {
  if ((left.sentence === null) !== (right.sentence === null)) return false;
  const [a, b] = [wordsOf(left.text), wordsOf(right.text)];
  const shared = [...a].filter((word) => b.has(word)).length;
  return shared / Math.max(a.size, b.size, 1) >= MIN_SIMILARITY;
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
}

function changedRow(first: ReportLine, second: ReportLine): AlignedRow {
  const parts = diffWordsWithSpace(first.text, second.text);
  const side = (isOther: (part: (typeof parts)[number]) => boolean, isOwn: (part: (typeof parts)[number]) => boolean) =>
    parts.filter((part) => !isOther(part)).map((part) => ({ text: part.value, isOwn: isOwn(part) }));
  return {
    kind: "changed",
    first,
    second,
    firstParts: side(
      (part) => part.added,
      (part) => part.removed,
    ),
    secondParts: side(
      (part) => part.removed,
      (part) => part.added,
    ),
  };
}
