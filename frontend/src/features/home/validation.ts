/** Checks a draft of the composer before it is sent. Pure. */

import { plural, t } from "@lingui/core/macro";
import type { Graph } from "@/shared/api/installation";
import { joinList } from "@/shared/format/lists";
import { formatCount } from "@/shared/format/numbers";
import type { QuestionDraft } from "./request";
import { type Settings, splitDomains } from "./settings";

/** Fields that can have an error. `documents` are the attached documents. */
export type FieldName = keyof Settings | "question" | "documents";

/** Errors by field. Without any, the draft is valid. */
export type FieldErrors = Partial<Record<FieldName, string>>;

/** Maximum number of sources in a scope. */
export const MAX_SOURCES = 1000;
const MIN_QUESTION_CHARS = 3;
export const MAX_QUESTION_CHARS = 8000;
export const MAX_TURNS = 2048;
const MAX_DOMAINS = 50;
const MAX_TEMPLATE_CHARS = 4000;
const DOMAIN = /^(?:https?:\/\/)?(?:\*\.)?[^\s/@]+\.[^\s/@.]+\.?(?:[/?#].*)?$/;
const LANGUAGE = /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/;

/** Return what must be changed before the question can be asked, by field. */
export function validateDraft(draft: QuestionDraft): FieldErrors {
  const errors: Partial<Record<FieldName, string | null>> = {
    question: validateQuestion(draft.question),
    documents: validateSingles(draft),
    ...validateSettings(draft),
  };
  return Object.fromEntries(Object.entries(errors).filter(([, error]) => error));
}

/** Return what is wrong with a question. `null` means that it is valid. */
export function validateQuestion(question: string): string | null {
  if (question.trim().length < MIN_QUESTION_CHARS) return t`Enter a question of at least three characters.`;
  if (question.trim().length > MAX_QUESTION_CHARS)
    return t`Shorten the question to at most 8,000 characters. Put the rest into a document.`;
  return null;
}

function validateSettings(settings: Settings): Partial<Record<FieldName, string | null>> {
  const isInRange = Number.isInteger(settings.turns) && settings.turns >= 1 && settings.turns <= MAX_TURNS;
  return {
    turns: isInRange ? null : t`Enter a number of turns from 1 to 2,048.`,
    usd: isValidLimit(settings.usd)
      ? null
      : t`Enter the maximum cost as a number of dollars, such as 2.50, or leave it empty.`,
    minutes: isValidLimit(settings.minutes)
      ? null
      : t`Enter the maximum time as a number of minutes above zero, or leave it empty.`,
    tokens:
      isValidLimit(settings.tokens) && Number.isInteger(Number(settings.tokens))
        ? null
        : t`Enter the maximum number of tokens as a whole number above zero, or leave it empty.`,
    onlyDomains: validateDomains(settings.onlyDomains),
    excludedDomains: validateDomains(settings.excludedDomains),
    offline:
      settings.offline && (settings.web || settings.mcp.length > 0)
        ? t`An offline run uses neither the web nor MCP servers. Switch them off, or allow the run to go online.`
        : null,
    language:
      settings.language.trim() === "" || LANGUAGE.test(settings.language.trim())
        ? null
        : t`Enter the language as a tag, such as en, zh or pt-BR, or leave it empty.`,
    template:
      settings.template.trim().length <= MAX_TEMPLATE_CHARS
        ? null
        : t`Shorten the outline to at most 4,000 characters.`,
  };
}

function validateDomains(text: string): string | null {
  const domains = splitDomains(text);
  const invalid = domains.find((domain) => !DOMAIN.test(domain));
  if (invalid !== undefined) return t`“${invalid}” is not a domain. Enter domains such as example.org.`;
  return domains.length > MAX_DOMAINS ? t`Enter at most 50 domains.` : null;
}

/** The part of an API field that names a field of the form. The first that begins the field is used. */
const API_FIELDS: readonly [string, FieldName][] = [
  ["question", "question"],
  ["graph", "graph"],
  ["budget.max_turns", "turns"],
  ["budget.max_cost_usd", "usd"],
  ["budget.max_tokens", "tokens"],
  ["budget.max_seconds", "minutes"],
  ["preset", "preset"],
  ["engines", "engine"],
  ["scope.only_domains", "onlyDomains"],
  ["scope.excluded_domains", "excludedDomains"],
  ["scope.offline", "offline"],
  ["scope.mcp", "mcp"],
  ["scope.collections", "collections"],
  ["scope.sources", "documents"],
  ["report_style.length", "length"],
  ["report_style.language", "language"],
  ["report_style", "template"],
  ["interactions", "reviewPlan"],
  ["tool_policy", "toolPolicy"],
];

/** Return the field of the form that a field of the API belongs to. `null` means that the form has no such field. */
export function findField(apiField: string | null | undefined): FieldName | null {
  const isPart = (name: string) => apiField === name || apiField?.startsWith(`${name}.`);
  return API_FIELDS.find(([name]) => isPart(name))?.[1] ?? null;
}

export type AttachedDocuments = Pick<QuestionDraft, "sources" | "attachedTo" | "singles">;

/**
 * If more documents are attached than a scope may name, the scope names their collections. Documents in no collection
 * would be left out.
 */
export function validateSingles({ sources, singles }: AttachedDocuments): string | null {
  if (sources.length <= MAX_SOURCES || singles.length === 0) return null;
  const rest = singles.length > 3 ? [t`${formatCount(singles.length - 3)} more`] : [];

  const names = joinList([...singles.slice(0, 3), ...rest]);
  return plural(singles.length, {
    one: `More than 1,000 documents are attached, so the run reads whole folders, but ${names} is in no folder. Choose Clear, move it into a folder, and add the folders again.`,
    other: `More than 1,000 documents are attached, so the run reads whole folders, but ${names} are in no folder. Choose Clear, move them into a folder, and add the folders again.`,
  });
}

function isValidLimit(text: string): boolean {
  return text.trim() === "" || (Number(text) > 0 && Number.isFinite(Number(text)));
}

/** Return whether the request needs the list of graphs: an engine of every role is sent for each role. */
export function needsGraphs(settings: Pick<Settings, "engine">): boolean {
  return settings.engine.trim() !== "";
}

/** Return why the selected engine cannot be used with the selected graph. `null` means that it can. */
export function validateEngine(settings: Pick<Settings, "engine" | "graph">, graphs: readonly Graph[]): string | null {
  if (!needsGraphs(settings)) return null;
  const graph = graphs.find(({ name }) => name === settings.graph);
  if (!graph) return t`The graph ${settings.graph} is not available in this installation. Select another graph.`;
  if (graph.roles.length > 0) return null;
  return t`The graph ${graph.title || graph.name} has no roles, so no model can be selected for it. Select the default of this installation.`;
}
