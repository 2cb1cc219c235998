/** What a step of a timeline says, also where no summary stands for it: its title and the parts of its detail. */

import { plural, t } from "@lingui/core/macro";
import type { Schemas } from "@/shared/api/client";
import type { Step } from "@/shared/api/runs";
import { joinParts } from "@/shared/format/lists";
import {
  FOLLOW_UP_NAMES,
  name,
  nothingFound,
  pages,
  passages,
  passagesOf,
  type StepTexts,
  stepTexts,
} from "@/shared/format/step-texts";
import { type CodedText, knowsAll, sayText, type TextsByCode } from "@/shared/texts/coded-text";
import { REQUEST_TEXTS } from "@/shared/texts/request-texts";

/** Titles, and parts of details, of steps without a summary. */
const PART_TEXTS: TextsByCode<Schemas["StepTextCode"]> = {
  text: ({ text }) => text,
  calculations: () => t`Calculations for the answer`,
  follow_up_kind: ({ kind }) => t`Kind of the follow-up: ${name(FOLLOW_UP_NAMES, kind)}`,
  earlier_report: ({ title }) => t`Earlier report: ${title}`,
  earlier_report_deleted: () => t`The earlier report was deleted`,
  plan_requested_anew: () => t`Another plan was requested`,
  sections: ({ count }) => plural(Number(count), { one: "# section", other: "# sections" }),
  answer: ({ text }) => t`Answer: ${text}`,
  summary: ({ text }) => t`Summary: ${text}`,
  passage_of_source: () => passagesOf(1, 1),
  passages_of_source: (p) => passagesOf(Number(p.passages), 1),
  passages_of_sources: (p) => passagesOf(Number(p.passages), Number(p.sources)),
  passages: (p) => passages(Number(p.passages)),
  nothing_found: nothingFound,
  page: () => pages(1),
  pages: (p) => pages(Number(p.pages)),
  characters: ({ start, end, total }) => t`characters ${start} to ${end} of ${total}`,
  from_origin: ({ origin }) => t`from ${origin}`,
  call_of_batch: ({ number, size }) => t`call ${number} of ${size} at once`,
  no_text: () => t`no text`,
  one_part: () => t`one part`,
  passage_omitted: () => t`passages not shown: ${1}`,
  passages_omitted: ({ count }) => t`passages not shown: ${count}`,
  waited: ({ seconds }) => t`waited ${seconds} s for other calls of the provider`,
  answered_by_fallback: ({ model, reasons }) => t`answered by the fallback ${model} (${reasons})`,
  repeated: ({ seqs }) => t`repeated, because step ${seqs} recorded a different request`,
  documents_deleted: ({ count }) =>
    plural(Number(count), { one: "# cited document was deleted", other: "# cited documents were deleted" }),
  kept: () => t`kept`,
  set_aside: () => t`not kept`,
  sentences_and_words: (p) =>
    joinParts([
      plural(Number(p.sentences), { one: "# sentence", other: "# sentences" }),
      plural(Number(p.words), { one: "# word", other: "# words" }),
    ]),
  new_subgoal: ({ subgoal }) => t`new subgoal: ${subgoal}`,
  for_subgoal: ({ subgoal }) => t`for: ${subgoal}`,
  asked_because: REQUEST_TEXTS.asked_because,
};

type Said = Pick<Step, "title" | "detail" | "summary"> & Partial<Pick<Step, "title_text" | "detail_texts">>;

/** Return the title and the detail of a step in the person's language. */
export function rowTexts({ title, detail, summary, title_text, detail_texts = [] }: Said): StepTexts {
  if (summary) return stepTexts({ title, detail, summary });
  return {
    title: sayText(TITLE_TEXTS, title, title_text),
    detail: knowsAll(PART_TEXTS, detail_texts) ? joinDetail(detail_texts) : detail,
  };
}

const TITLE_TEXTS: TextsByCode = { ...REQUEST_TEXTS, ...PART_TEXTS };

/** A part in a person's or a model's words keeps the separator that it was written with. */
function joinDetail(parts: readonly CodedText[]): string {
  const said = parts.map((part) => sayText(PART_TEXTS, "", part));
  return parts.some(({ code }) => code === "text") ? said.join(" · ") : joinParts(said);
}

export const KNOWN_PART_CODES: readonly string[] = Object.keys(PART_TEXTS);
