/** Decisions about the tool calls of an input request: what was entered so far, and what can be sent. Pure. */

import type { Schemas } from "@/shared/api/client";

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

export const DECISION_LABELS: Record<DecisionType, string> = {
  approve: "Approve",
  edit: "Edit",
  reject: "Reject",
  respond: "Respond",
  ignore: "Ignore",
};

export const SEND_LABELS: Record<DecisionType, string> = {
  approve: "Approve",
  edit: "Approve the edited call",
  reject: "Reject",
  respond: "Send this response",
  ignore: "Ignore",
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
    return isObject(value) ? null : 'The arguments must be a JSON object, such as {"name": "value"}.';
  } catch (error) {
    return `Invalid JSON: ${error instanceof Error ? error.message : String(error)}`;
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
  return undecided.length === reviews.length ? "Decide on each call first" : `Undecided: ${listNames(undecided)}`;
}

function listNames(reviews: readonly ToolReview[]): string {
  return reviews.map((review) => review.name).join(", ");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
