/** The changes of a report from the version before it, in words. Pure. */

import type { Report } from "@/shared/api/reports";
import { pluralize } from "@/shared/format/numbers";

type FollowUp = NonNullable<Report["follow_up"]>;
type Changes = NonNullable<FollowUp["changes"]>;
type SectionChange = Changes["sections"][number];
type SentenceChange = Changes["answer"][number];

export interface ChangeLine {
  text: string;
  /** 0 for a section, 1 for a sentence of it. */
  level: 0 | 1;
}

const KIND_TEXTS: Record<FollowUp["kind"], string> = {
  auto: "This follows an earlier report",
  question: "This answers a question on an earlier report, from the report and its evidence",
  edit: "This is an edited version of an earlier report",
  research: "New research was merged into an earlier report",
};

const CHOOSER_TEXTS: Record<FollowUp["chosen_by"], string> = {
  person: "as you chose",
  model: "as the model chose",
  rules: "as rules chose by its words",
};

/** Describe what a report has to do with the earlier one, and who chose that. */
export function describeFollowUp(followUp: FollowUp): string {
  return `${KIND_TEXTS[followUp.kind]}, ${CHOOSER_TEXTS[followUp.chosen_by]}.`;
}

/** Return the changes as lines. */
export function listChanges(changes: Changes): ChangeLine[] {
  const lines: ChangeLine[] = [];
  if (changes.title_before) lines.push({ text: `Title changed, before: ${changes.title_before}`, level: 0 });
  if (changes.answer.length > 0) {
    lines.push({ text: "Short answer", level: 0 }, ...changes.answer.map(describeSentence));
  }
  for (const section of changes.sections) {
    lines.push({ text: describeSection(section), level: 0 });
    if (section.kind === "changed") lines.push(...section.sentences.map(describeSentence));
  }
  if (lines.length === 0) return [{ text: "Nothing changed.", level: 0 }];
  if (changes.kept_sections > 0) {
    lines.push({ text: `${pluralize(changes.kept_sections, "section")} unchanged`, level: 0 });
  }
  return lines;
}

function describeSection({ kind, heading, before, sentences }: SectionChange): string {
  const name = heading || "Section without a heading";
  const earlier = before ? `, before: ${before}` : "";
  const count = kind === "added" ? ` (${pluralize(sentences.length, "sentence")})` : "";
  return `Section ${kind}: ${name}${earlier}${count}`;
}

function describeSentence({ kind, text, before }: SentenceChange): ChangeLine {
  if (kind === "added") return { text: `Added: ${text}`, level: 1 };
  if (kind === "removed") return { text: `Removed: ${text}`, level: 1 };
  if (before === text) return { text: `Other sources: ${text}`, level: 1 };
  return { text: `Changed: ${text} (before: ${before})`, level: 1 };
}
