/** Decisions about the tool calls of an input request: what was entered so far, and what can be sent. Pure. */

import type { MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { Schemas } from "@/shared/api/client";
import { joinParts } from "@/shared/format/lists";

export type ToolReview = Schemas["ToolReviewOut"];
export type DecisionType = Schemas["ToolReviewDecisionType"];
export type Decision = Schemas["DecisionIn"];

export interface DecisionDraft {
  /** `null` means that nothing is decided yet. */
  type: DecisionType | null;
  /** Arguments as they are being edited. */
  args: string;
  message: string;
}

export const DECISION_LABELS: Record<DecisionType, MessageDescriptor> = {
  approve: msg`Approve`,
  edit: msg`Edit`,
  reject: msg`Reject`,
  respond: msg`Respond`,
  ignore: msg`Ignore`,
};

export const SEND_LABELS: Record<DecisionType, MessageDescriptor> = {
  approve: msg`Approve`,
  edit: msg`Approve the edited call`,
  reject: msg`Reject`,
  respond: msg`Send this response`,
  ignore: msg`Ignore`,
};

export function createDrafts(reviews: readonly ToolReview[]): DecisionDraft[] {
  return reviews.map((review) => ({ type: null, args: formatArgs(review.args), message: "" }));
}

export function formatArgs(args: ToolReview["args"]): string {
  return args === null ? "" : JSON.stringify(args, null, 2);
}

/** Return the decisions that can be offered. Arguments that are too long to be shown cannot be edited. */
export function allowedDecisions(review: ToolReview): DecisionType[] {
  return review.decisions.filter((type) => type !== "edit" || review.args !== null);
}

export function hasExtraFields(type: DecisionType): boolean {
  return type === "edit" || type === "reject" || type === "respond";
}

/** Return why the edited arguments cannot be sent. `null` means that they can. */
export function findArgsError(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? null : t`The arguments must be a JSON object, such as ${'{"name": "value"}'}.`;
  } catch (error) {
    return t`Invalid JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Return the decision to send. `null` means that it is incomplete. */
export function buildDecision(draft: DecisionDraft): Decision | null {
  const { type } = draft;
  if (type === null) return null;
  const message = draft.message.trim();
  if (type === "edit") {
    if (findArgsError(draft.args) !== null) return null;
    return { type, message: "", edited_action: { name: "", args: JSON.parse(draft.args) as Record<string, unknown> } };
  }
  if (type === "respond" && !message) return null;
  return { type, message: type === "reject" || type === "respond" ? message : "" };
}

/** Describe what is missing. Empty means that the decisions can be sent. */
export function describeMissingDecisions(reviews: readonly ToolReview[], drafts: readonly DecisionDraft[]): string {
  const undecided = reviews.filter((_, at) => buildDecision(drafts[at] as DecisionDraft) === null);
  if (undecided.length === 0) return "";
  return undecided.length === reviews.length ? t`Decide on each call first` : t`Undecided: ${listNames(undecided)}`;
}

function listNames(reviews: readonly ToolReview[]): string {
  return joinParts(reviews.map((review) => review.name));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
