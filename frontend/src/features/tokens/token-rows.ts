/** The tokens of a turn as rows to read: what each is, whether it is trained, how likely it was. Pure. */

import type { Turn } from "@/shared/api/trajectories";

export interface TokenRow {
  /** Place in the completion, from 0. */
  at: number;
  id: number;
  /** What it decodes to. null: not known. */
  piece: string | null;
  trained: boolean;
  /** Natural logarithm. */
  logprob: number;
  /** Nats. null: not given. */
  entropy: number | null;
  /** Kind of the span that it lies in. Empty: none. */
  span: string;
}

export function tokenRows(turn: Turn): TokenRow[] {
  const tokens = turn.tokens;
  if (!tokens) return [];
  return tokens.completion_ids.map((id, at) => ({
    at,
    id,
    piece: tokens.completion_pieces?.[at] ?? null,
    trained: tokens.mask[at] ?? false,
    logprob: tokens.logprobs[at] ?? 0,
    entropy: tokens.entropy?.[at] ?? null,
    span: spanAt(turn, at),
  }));
}

/** How unlikely a token was, in five steps: 0 expected, 4 a surprise. */
export function surprise(logprob: number): number {
  if (logprob > -0.1) return 0;
  if (logprob > -0.7) return 1;
  if (logprob > -1.6) return 2;
  return logprob > -3 ? 3 : 4;
}

/** A piece that can be seen: line breaks and blanks get a sign. */
export function visible(row: TokenRow): string {
  if (row.piece === null) return String(row.id);
  return row.piece === "" ? "∅" : row.piece.replaceAll("\n", "⏎").replaceAll(" ", "·");
}

function spanAt(turn: Turn, at: number): string {
  const span = turn.spans.find(
    ({ start_token, end_token }) => start_token !== null && end_token !== null && start_token <= at && at < end_token,
  );
  return span?.kind ?? "";
}
