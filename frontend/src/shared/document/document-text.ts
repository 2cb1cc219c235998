/** A stored text in parts, with passages of it marked. Positions are code points, as the server counts them. Pure. */

import type { SourceSpan } from "../api/library";
import type { Citation } from "../api/reports";

/** A passage to mark. */
export interface DocumentMark extends SourceSpan {
  /** What the button that shows the passage says, such as the number of a citation. */
  label: string;
}

export interface TextPart {
  text: string;
  /** Position of the mark in the list of marks. `null` means that the text is not marked. */
  mark: number | null;
  /** Whether the mark begins with this part. */
  isStart: boolean;
}

/** Return the quotes of citations whose text is stored. Their buttons have the numbers of the citations. */
export function listCitedMarks(citations: readonly Citation[]): DocumentMark[] {
  return citations.flatMap(({ text_id: textId, start, end, number }) =>
    textId === null ? [] : [{ text_id: textId, start, end, label: String(number) }],
  );
}

/** Code points of the text that are loaded at once. */
export const WINDOW_CHARS = 20_000;

/** Number of the window that contains a position. */
export function windowOf(position: number): number {
  return Math.floor(position / WINDOW_CHARS);
}

/** Cut the part of a text that begins at `start` where marks begin and end. Of marks that overlap, the first counts. */
export function cutText(text: string, start: number, marks: readonly DocumentMark[]): TextPart[] {
  const points = Array.from(text);
  const end = start + points.length;
  const cuts = new Set([start, end]);
  for (const mark of marks) {
    for (const at of [mark.start, mark.end]) if (at > start && at < end) cuts.add(at);
  }
  const sorted = [...cuts].sort((left, right) => left - right);
  return sorted.slice(0, -1).map((from, index) => {
    const found = marks.findIndex((mark) => mark.start <= from && from < mark.end);
    return {
      text: points.slice(from - start, (sorted[index + 1] ?? end) - start).join(""),
      mark: found < 0 ? null : found,
      isStart: found >= 0 && marks[found]?.start === from,
    };
  });
}
