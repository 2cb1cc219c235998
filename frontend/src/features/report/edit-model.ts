/**
 * A report while a person edits it: blocks in their order, and what each action does to them. Pure.
 *
 * A sentence is one block, because verdicts, ratings and citations belong to sentences. Its citations are a list of
 * tokens. A token is made only from a citation of the edited version or from a passage that the run has read, so none
 * can point to nothing.
 */

import type { EvidencePassage, Report, ReportEditRequest, Sentence } from "@/shared/api/reports";
import { randomId } from "@/shared/stream/browser";

export type Layout = Sentence["layout"];

export interface NumberedCitation {
  kind: "numbered";
  number: number;
}

export interface NewCitation {
  kind: "new";
  passage: EvidencePassage["passage"];
  quote: string;
  title: string;
}

export type EditCitation = NumberedCitation | NewCitation;

export interface SentenceBlock {
  kind: "sentence";
  key: string;
  /** Id of the sentence in the edited version. `null` means that it is new. */
  id: string | null;
  text: string;
  layout: Layout;
  citations: readonly EditCitation[];
}

export interface HeadingBlock {
  kind: "heading";
  key: string;
  text: string;
}

export type Block = SentenceBlock | HeadingBlock;

export interface EditedReport {
  title: string;
  answer: SentenceBlock | null;
  blocks: readonly Block[];
  limitations: string;
}

function blockFromSentence(sentence: Sentence): SentenceBlock {
  const numbers = [...sentence.citations, ...sentence.passages];
  return {
    kind: "sentence",
    key: sentence.id,
    id: sentence.id,
    text: sentence.text,
    layout: sentence.layout,
    citations: numbers.map((number) => ({ kind: "numbered", number })),
  };
}

export function editFromReport(report: Report): EditedReport {
  return {
    title: report.title,
    answer: report.answer && blockFromSentence(report.answer),
    blocks: report.sections.flatMap((section, at): Block[] => [
      { kind: "heading", key: `h${at}`, text: section.heading },
      ...section.sentences.map(blockFromSentence),
    ]),
    limitations: report.limitations,
  };
}

/** Return the request that saves an edit. Sentences without text are left out. */
export function buildEditRequest(
  edit: EditedReport,
  versions: { base: number; latest: number },
  note: string,
): ReportEditRequest {
  const sections: ReportEditRequest["sections"] = [];
  for (const block of edit.blocks) {
    if (block.kind === "heading") sections.push({ heading: block.text.trim(), sentences: [] });
    else if (block.text.trim()) {
      if (sections.length === 0) sections.push({ heading: "", sentences: [] });
      sections.at(-1)?.sentences.push(sentenceToRequest(block));
    }
  }
  return {
    base_version: versions.base,
    latest_version: versions.latest,
    note: note.trim(),
    title: edit.title.trim(),
    answer: edit.answer?.text.trim() ? sentenceToRequest(edit.answer) : null,
    sections,
    limitations: edit.limitations,
  };
}

function sentenceToRequest({ id, text, layout, citations }: SentenceBlock) {
  return {
    id,
    text: text.trim(),
    layout,
    citations: citations.map((one) =>
      one.kind === "numbered" ? one.number : { passage: one.passage, quote: one.quote },
    ),
  };
}

/** Return the key of the block that a problem of the server is about. `null` means that it is about none. */
export function findProblemKey(edit: EditedReport, field: string | null): string | null {
  if (field?.startsWith("answer")) return edit.answer?.key ?? null;
  const match = /^sections\.(\d+)\.sentences\.(\d+)/.exec(field ?? "");
  if (!match) return null;
  let [section, sentence] = [edit.blocks[0]?.kind === "heading" ? -1 : 0, -1];
  for (const block of edit.blocks) {
    if (block.kind === "heading") [section, sentence] = [section + 1, -1];
    else if (block.text.trim()) sentence += 1;
    if (block.kind === "sentence" && section === Number(match[1]) && sentence === Number(match[2])) return block.key;
  }
  return null;
}

/** Return whether a sentence is new or has another text or other citations than in the edited version. */
export function isChanged(block: SentenceBlock, originals: ReadonlyMap<string, SentenceBlock>): boolean {
  const before = block.id === null ? undefined : originals.get(block.id);
  if (!before) return true;
  return before.text.trim() !== block.text.trim() || describeCitations(before) !== describeCitations(block);
}

function describeCitations({ citations }: SentenceBlock): string {
  return citations.map((one) => (one.kind === "numbered" ? one.number : JSON.stringify(one))).join();
}

/** Return the sentences of the edited version by id. */
export function listOriginals(report: Report): ReadonlyMap<string, SentenceBlock> {
  return new Map(listSentenceBlocks(editFromReport(report)).map((block) => [block.key, block]));
}

export function listSentenceBlocks(edit: EditedReport): SentenceBlock[] {
  const blocks = edit.blocks.filter((block) => block.kind === "sentence");
  return edit.answer ? [edit.answer, ...blocks] : blocks;
}

export type EditAction =
  | { type: "title" | "limitations"; text: string }
  | { type: "text"; key: string; text: string }
  | { type: "layout"; key: string; layout: Layout }
  | { type: "move"; key: string; by: -1 | 1 }
  | { type: "remove"; key: string }
  | { type: "add"; kind: Block["kind"]; after: string | null; key: string }
  | { type: "split"; key: string; at: number; newKey: string }
  | { type: "join"; key: string }
  | { type: "cite"; key: string; citation: EditCitation }
  | { type: "uncite"; key: string; at: number }
  | { type: "moveCitation"; key: string; at: number; by: -1 | 1 };

/** Return a key for a block that is added. */
export function newBlockKey(): string {
  return `new-${randomId()}`;
}

export function applyAction(edit: EditedReport, action: EditAction): EditedReport {
  switch (action.type) {
    case "title":
    case "limitations":
      return { ...edit, [action.type]: action.text };
    case "text":
      return changeBlock(edit, action.key, (block) => ({ ...block, text: action.text }));
    case "layout":
      return changeSentence(edit, action.key, (block) => ({ ...block, layout: action.layout }));
    case "move":
      return moveBlock(edit, action.key, action.by);
    case "remove":
      if (edit.answer?.key === action.key) return { ...edit, answer: null };
      return { ...edit, blocks: edit.blocks.filter((block) => block.key !== action.key) };
    case "add":
      return addBlock(edit, action);
    case "split":
      return splitSentence(edit, action);
    case "join":
      return joinSentence(edit, action.key);
    case "cite":
      return changeSentence(edit, action.key, (block) => addCitation(block, action.citation, block.citations.length));
    case "uncite":
      return changeSentence(edit, action.key, (block) => ({
        ...block,
        citations: block.citations.filter((_, at) => at !== action.at),
      }));
    case "moveCitation":
      return moveCitation(edit, action.key, action.at, action.by);
  }
}

function changeBlock(edit: EditedReport, key: string, change: (block: Block) => Block): EditedReport {
  if (edit.answer?.key === key) return { ...edit, answer: change(edit.answer) as SentenceBlock };
  return { ...edit, blocks: edit.blocks.map((block) => (block.key === key ? change(block) : block)) };
}

function changeSentence(
  edit: EditedReport,
  key: string,
  change: (block: SentenceBlock) => SentenceBlock,
): EditedReport {
  return changeBlock(edit, key, (block) => (block.kind === "sentence" ? change(block) : block));
}

function moveBlock(edit: EditedReport, key: string, by: -1 | 1): EditedReport {
  const at = edit.blocks.findIndex((block) => block.key === key);
  const [block, other] = [edit.blocks[at], edit.blocks[at + by]];
  if (!block || !other) return edit;
  const blocks = [...edit.blocks];
  blocks[at] = other;
  blocks[at + by] = block;
  return { ...edit, blocks };
}

function addBlock(edit: EditedReport, { kind, after, key }: Extract<EditAction, { type: "add" }>): EditedReport {
  const at = edit.blocks.findIndex((block) => block.key === after);
  const before = edit.blocks[at];
  const added: Block =
    kind === "heading"
      ? { kind, key, text: "" }
      : {
          kind,
          key,
          id: null,
          text: "",
          layout: before?.kind === "sentence" ? followLayout(before) : "statement",
          citations: [],
        };
  return { ...edit, blocks: edit.blocks.toSpliced(at + 1, 0, added) };
}

/** Return the layout of a sentence that is added after another one. */
function followLayout({ layout }: SentenceBlock): Layout {
  if (layout === "paragraph") return "continued";
  return layout === "header" ? "row" : layout;
}

/** The first half keeps the id and all citations, because nobody knows which half they support. */
function splitSentence(edit: EditedReport, action: Extract<EditAction, { type: "split" }>): EditedReport {
  const at = edit.blocks.findIndex((block) => block.key === action.key);
  const block = edit.blocks[at];
  if (block?.kind !== "sentence") return edit;
  const second: SentenceBlock = {
    ...block,
    key: action.newKey,
    id: null,
    text: block.text.slice(action.at).trimStart(),
    layout: followLayout(block),
    citations: action.at < block.text.trimEnd().length ? block.citations : [],
  };
  const first = { ...block, text: block.text.slice(0, action.at).trimEnd() };
  return { ...edit, blocks: edit.blocks.toSpliced(at, 1, first, second) };
}

/** Join a sentence to the one before it. It has the citations of both. */
function joinSentence(edit: EditedReport, key: string): EditedReport {
  const at = edit.blocks.findIndex((block) => block.key === key);
  const [before, block] = [edit.blocks[at - 1], edit.blocks[at]];
  if (before?.kind !== "sentence" || block?.kind !== "sentence") return edit;
  const known = new Set(before.citations.map((one) => JSON.stringify(one)));
  const joined = {
    ...before,
    text: [before.text.trimEnd(), block.text.trimStart()].filter(Boolean).join(" "),
    citations: [...before.citations, ...block.citations.filter((one) => !known.has(JSON.stringify(one)))],
  };
  return { ...edit, blocks: edit.blocks.toSpliced(at - 1, 2, joined) };
}

/** Move a citation within its sentence, and from its first or last place to the sentence before or after. */
function moveCitation(edit: EditedReport, key: string, at: number, by: -1 | 1): EditedReport {
  const sentences = listSentenceBlocks(edit);
  const position = sentences.findIndex((block) => block.key === key);
  const citations = [...(sentences[position]?.citations ?? [])];
  const [citation] = citations.splice(at, 1);
  if (!citation) return edit;
  if (at + by >= 0 && at + by <= citations.length) {
    citations.splice(at + by, 0, citation);
    return changeSentence(edit, key, (block) => ({ ...block, citations }));
  }
  const target = sentences[position + by];
  if (!target) return edit;
  const left = changeSentence(edit, key, (block) => ({ ...block, citations }));
  return changeSentence(left, target.key, (block) => addCitation(block, citation, by < 0 ? block.citations.length : 0));
}

/** Add a citation to a sentence that does not have it yet. */
function addCitation(block: SentenceBlock, citation: EditCitation, at: number): SentenceBlock {
  const text = JSON.stringify(citation);
  if (block.citations.some((one) => JSON.stringify(one) === text)) return block;
  return { ...block, citations: block.citations.toSpliced(at, 0, citation) };
}

/** An edit with what can be undone and redone. */
export interface EditHistory {
  past: readonly EditedReport[];
  present: EditedReport;
  future: readonly EditedReport[];
  /** The field that the last action typed in. Typing in it is undone as a whole. */
  typedIn: string | null;
}

const MAX_UNDO = 200;

export function startHistory(present: EditedReport): EditHistory {
  return { past: [], present, future: [], typedIn: null };
}

export function undo(history: EditHistory): EditHistory {
  const { past, present, future } = history;
  const before = past.at(-1);
  return before ? { past: past.slice(0, -1), present: before, future: [present, ...future], typedIn: null } : history;
}

export function redo(history: EditHistory): EditHistory {
  const { past, present, future } = history;
  const [next, ...rest] = future;
  return next ? { past: [...past, present], present: next, future: rest, typedIn: null } : history;
}

export function changeHistory(history: EditHistory, action: EditAction): EditHistory {
  const { past, present } = history;
  const typedIn = typedField(action);
  const changed = applyAction(present, action);
  if (changed === present) return history;
  const isSameTyping = typedIn !== null && typedIn === history.typedIn;
  return { past: isSameTyping ? past : [...past, present].slice(-MAX_UNDO), present: changed, future: [], typedIn };
}

function typedField(action: EditAction): string | null {
  if (action.type === "text") return action.key;
  return action.type === "title" || action.type === "limitations" ? action.type : null;
}
