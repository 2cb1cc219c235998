/** What a person has decided about the tool calls of a form so far, and what of it can be sent. Pure. */

import type { Schemas } from "@/shared/api/client";

export type ToolReview = Schemas["ToolReviewOut"];
export type DecisionType = Schemas["DecisionType"];
export type Decision = Schemas["DecisionIn"];

export interface DecisionDraft {
  /** null: not decided yet. */
  type: DecisionType | null;
  /** The arguments as they are being edited. */
  args: string;
  message: string;
}

export const DECISION_LABEL: Record<DecisionType, string> = {
  approve: "Approve",
  edit: "Edit",
  reject: "Reject",
  respond: "Respond",
  ignore: "Ignore",
};

export const SEND_LABEL: Record<DecisionType, string> = {
  approve: "Approve",
  edit: "Approve the edited call",
  reject: "Reject",
  respond: "Send this response",
  ignore: "Ignore",
};

export function startDrafts(reviews: readonly ToolReview[]): DecisionDraft[] {
  return reviews.map((review) => ({ type: null, args: writeArgs(review.args), message: "" }));
}

export function writeArgs(args: ToolReview["args"]): string {
  return args === null ? "" : JSON.stringify(args, null, 2);
}

/** Arguments that are too long to be shown cannot be edited. */
export function allowedDecisions(review: ToolReview): DecisionType[] {
  return review.decisions.filter((type) => type !== "edit" || review.args !== null);
}

export function needsFields(type: DecisionType): boolean {
  return type === "edit" || type === "reject" || type === "respond";
}

/** Return why edited arguments cannot be sent. null: they can. */
export function argsProblem(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? null : 'The arguments must be a JSON object, such as {"name": "value"}.';
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Return the decision to send. null: it is not complete. */
export function decisionOf(draft: DecisionDraft): Decision | null {
  const { type } = draft;
  if (type === null) return null;
  const message = draft.message.trim();
  if (type === "edit") {
    if (argsProblem(draft.args) !== null) return null;
    return { type, message: "", edited_action: { name: "", args: JSON.parse(draft.args) as Record<string, unknown> } };
  }
  if (type === "respond" && !message) return null;
  return { type, message: type === "reject" || type === "respond" ? message : "" };
}

/** Return what is still missing, in words. Empty: the decisions can be sent. */
export function missingDecisions(reviews: readonly ToolReview[], drafts: readonly DecisionDraft[]): string {
  const open = reviews.filter((_, at) => decisionOf(drafts[at] as DecisionDraft) === null);
  if (open.length === 0) return "";
  return open.length === reviews.length ? "Decide about each call first" : `Still open: ${names(open)}`;
}

function names(reviews: readonly ToolReview[]): string {
  return reviews.map((review) => review.name).join(", ");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
