/** Tokens of a role call as rows: span, loss mask and log-probability of each. Pure. */

import type { RoleCall } from "@/shared/api/trajectories";

export interface TokenRow {
  /** Index in the completion, from 0. */
  index: number;
  id: number;
  /** Text of the token. `null` means that it is not known. */
  text: string | null;
  trained: boolean;
  /** Natural logarithm. */
  logprob: number;
  /** In nats. `null` means that it was not recorded. */
  entropy: number | null;
  /** Kind of the completion span that contains the token. Empty if there is none. */
  span: string;
}

export function buildTokenRows(call: RoleCall): TokenRow[] {
  const tokens = call.tokens;
  if (!tokens) return [];
  return tokens.completion_ids.map((id, index) => ({
    index,
    id,
    text: tokens.completion_token_texts?.[index] ?? null,
    trained: tokens.loss_mask[index] ?? false,
    logprob: tokens.logprobs[index] ?? 0,
    entropy: tokens.entropy?.[index] ?? null,
    span: spanKindAt(call, index),
  }));
}

/** Return how unlikely a token was, from 0 (expected) to 4 (very unlikely). */
export function surpriseLevel(logprob: number): number {
  if (logprob > -0.1) return 0;
  if (logprob > -0.7) return 1;
  if (logprob > -1.6) return 2;
  return logprob > -3 ? 3 : 4;
}

/** Return a visible form of the token text: line breaks and spaces are replaced by symbols. */
export function visibleText(row: TokenRow): string {
  if (row.text === null) return String(row.id);
  return row.text === "" ? "∅" : row.text.replaceAll("\n", "⏎").replaceAll(" ", "·");
}

function spanKindAt(call: RoleCall, at: number): string {
  const span = call.spans.find(
    ({ start_token, end_token }) => start_token !== null && end_token !== null && start_token <= at && at < end_token,
  );
  return span?.kind ?? "";
}
