/** The blocks of a section: statements, paragraphs, lists and tables. Pure. */

import type { Sentence } from "@/shared/api/reports";

export interface Block {
  kind: "prose" | "list" | "table";
  sentences: Sentence[];
}

const FOLLOWERS: Partial<Record<Sentence["layout"], readonly Sentence["layout"][]>> = {
  statement: ["statement"],
  paragraph: ["continued"],
  continued: ["continued"],
  item: ["item"],
  header: ["row"],
  row: ["row"],
};

/** Group the sentences of a section. Statements that follow one another are one block. */
export function groupSentences(sentences: readonly Sentence[]): Block[] {
  const blocks: Block[] = [];
  for (const sentence of sentences) {
    const last = blocks.at(-1);
    const before = last?.sentences.at(-1);
    if (last && before && FOLLOWERS[before.layout]?.includes(sentence.layout)) last.sentences.push(sentence);
    else blocks.push({ kind: blockKind(sentence), sentences: [sentence] });
  }
  return blocks;
}

/** Split the text of a table row at the bars that are not escaped. */
export function splitCells(row: string): string[] {
  const body = row
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return body.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function blockKind(sentence: Sentence): Block["kind"] {
  if (sentence.layout === "item") return "list";
  return sentence.layout === "header" || sentence.layout === "row" ? "table" : "prose";
}
