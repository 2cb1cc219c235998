/** The changes of a report from the version before it, in words. Pure. */

import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import type { Report } from "@/shared/api/reports";

type FollowUp = NonNullable<Report["follow_up"]>;
type Changes = NonNullable<FollowUp["changes"]>;
type SectionChange = Changes["sections"][number];
type SentenceChange = Changes["answer"][number];

export interface ChangeLine {
  text: string;
  /** 0 for a section, 1 for a sentence of it. */
  level: 0 | 1;
}

const KIND_TEXTS: Record<FollowUp["kind"], MessageDescriptor> = {
  auto: msg`This follows an earlier report`,
  question: msg`This answers a question on an earlier report, from the report and its evidence`,
  edit: msg`This is an edited version of an earlier report`,
  research: msg`New research was merged into an earlier report`,
};

const CHOOSER_TEXTS: Record<FollowUp["chosen_by"], MessageDescriptor> = {
  person: msg`as you chose`,
  model: msg`as the model chose`,
  rules: msg`as rules chose by its words`,
};

/** Describe what a report has to do with the earlier one, and who chose that. */
export function describeFollowUp(followUp: FollowUp): string {
  const [kind, chooser] = [i18n._(KIND_TEXTS[followUp.kind]), i18n._(CHOOSER_TEXTS[followUp.chosen_by])];
  return t`${kind}, ${chooser}.`;
}

/** Return whether both versions have the same sentences with the same sources. */
export function isEmpty({ title_before, answer, sections }: Changes): boolean {
  return !title_before && answer.length === 0 && sections.length === 0;
}

/** Return the changes as lines. */
export function listChanges(changes: Changes): ChangeLine[] {
  const lines: ChangeLine[] = [];
  if (changes.title_before) lines.push({ text: t`Title changed, before: ${changes.title_before}`, level: 0 });
  if (changes.answer.length > 0) {
    lines.push({ text: t`Short answer`, level: 0 }, ...changes.answer.map(describeSentence));
  }
  for (const section of changes.sections) {
    lines.push({ text: describeSection(section), level: 0 });
    if (section.kind === "changed") lines.push(...section.sentences.map(describeSentence));
  }
  if (lines.length === 0) return [{ text: t`Nothing changed.`, level: 0 }];
  if (changes.kept_sections > 0) {
    lines.push({
      text: plural(changes.kept_sections, { one: "# section unchanged", other: "# sections unchanged" }),
      level: 0,
    });
  }
  return lines;
}

/** Describe what happened to a section. */
export function describeSection({ kind, heading, before, sentences }: SectionChange): string {
  const name = heading || t`Section without a heading`;
  const earlier = before ? t`, before: ${before}` : "";
  const count = kind === "added" ? ` (${plural(sentences.length, { one: "# sentence", other: "# sentences" })})` : "";
  if (kind === "added") return t`Section added: ${name}${earlier}${count}`;
  return kind === "removed" ? t`Section removed: ${name}${earlier}` : t`Section changed: ${name}${earlier}`;
}

function describeSentence({ kind, text, before }: SentenceChange): ChangeLine {
  if (kind === "added") return { text: t`Added: ${text}`, level: 1 };
  if (kind === "removed") return { text: t`Removed: ${text}`, level: 1 };
  if (before === text) return { text: t`Other sources: ${text}`, level: 1 };
  return { text: t`Changed: ${text} (before: ${before})`, level: 1 };
}
