/**
 * Truncates the context of a quote at word boundaries. Pure. Counts UTF-16 units, which is precise enough for display.
 */

/** Return the end of a text, at most `limit` long. */
export function truncateStart(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const cut = text.slice(-limit);
  const space = cut.search(/\s/);
  return `…${space < 0 ? cut : cut.slice(space)}`;
}

/** Return the start of a text, at most `limit` long. */
export function truncateEnd(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const cut = text.slice(0, limit);
  const space = cut.search(/\s\S*$/);
  return `${space < 0 ? cut : cut.slice(0, space)} …`;
}

/** Join lines that were broken by hand. Blank lines, lists, quotes, tables and headings are kept. */
export function reflow(text: string): string {
  return text.replace(/(?<=[^\n])\n(?=[^\s\-*+>#|`\d])/g, " ");
}

/** Replace each run of whitespace by one space. */
export function collapseWhitespace(text: string): string {
  return text.replace(/\s+/g, " ");
}

/** Split a text into sentences that together are the text again. */
export function splitIntoSentences(text: string): string[] {
  return Array.from(new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text), ({ segment }) => segment);
}
