/** Cuts the surroundings of a quote at word borders. Pure; counts UTF-16 units, which is close enough for looks. */

/** The end of a text, at most `limit` long. */
export function tailOf(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const cut = text.slice(-limit);
  const space = cut.search(/\s/);
  return `…${space < 0 ? cut : cut.slice(space)}`;
}

/** The start of a text, at most `limit` long. */
export function headOf(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const cut = text.slice(0, limit);
  const space = cut.search(/\s\S*$/);
  return `${space < 0 ? cut : cut.slice(0, space)} …`;
}

/** Lines that were broken by hand flow again; blank lines, lists, quotes, tables and headings keep theirs. */
export function reflowed(text: string): string {
  return text.replace(/(?<=[^\n])\n(?=[^\s\-*+>#|`\d])/g, " ");
}

/** All white space as single spaces. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}
