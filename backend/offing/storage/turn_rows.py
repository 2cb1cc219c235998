"""Turns as rows: any number of them in one statement, with their segments, spans and prompt parts.

The only home of that statement. Knows nothing of answers and attempts; what they become is in `turns`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from psycopg.types.json import Jsonb

from offing.core.run import Fence
from offing.storage.pool import Connection
from offing.storage.token_columns import TokenColumns

GIVEN = """
    given as (
      select * from jsonb_to_recordset(%(turns)s) as g(
        seq bigint, role text, engine text, superstep integer, model text, prompt jsonb, completion text,
        sampling jsonb, prompt_tokens integer, completion_tokens integer, usd numeric, priced boolean,
        failed_attempts jsonb, trainable text, trainable_reason text, segment integer, place integer,
        prompt_kept integer, fracture text, parent integer, parent_tokens integer, prompt_offset integer, policy text,
        policy_name text, policy_version integer, weights_sha256 text, tokenizer_sha256 text, template_sha256 text,
        engine_build text, finish text, state_key text, action_key text, accepted boolean, attempt integer,
        problem text, tokens integer))
"""

TURNS = """
    insert into turn (run_id, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens,
                      completion_tokens, usd, priced, failed_attempts, trainable, trainable_reason, segment, place,
                      prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, mask, policy,
                      policy_version_id, weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish,
                      checkpoint_id, state_key, action_key, accepted, attempt, problem)
    select %(run)s, seq, %(tenant)s, role, engine, model, prompt, completion, sampling, prompt_tokens,
           completion_tokens, usd, priced, failed_attempts, trainable, trainable_reason, segment, place,
           prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, mask, policy,
           (select id from policy_version p
             where p.tenant_id = %(tenant)s and p.name = g.policy_name and p.version = g.policy_version),
           weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish,
           (select checkpoint_id from checkpoint c
             where c.run_id = %(run)s and c.ns = '' and c.superstep < g.superstep
             order by c.superstep desc, c.nth desc limit 1),
           state_key, action_key, accepted, attempt, problem
      from given g
"""

BARE = f"""
    with {GIVEN}
    {TURNS} cross join (select null::bytea as prompt_ids, null::bytea as completion_ids, null::bytea as logprobs,
                               null::bytea as entropy, null::bytea as mask) as t
"""
"""Where no turn has a segment, spans, prompt parts or tokens."""

WHOLE = f"""
    with {GIVEN},
    part as (
      insert into text_part (tenant_id, sha256, body)
      select %(tenant)s, p.sha256, p.body from unnest(%(hashes)s::bytea[], %(bodies)s::text[]) as p(sha256, body)
      on conflict do nothing),
    opened as (
      insert into segment (run_id, idx, tenant_id, role, parent_idx, parent_tokens, fracture)
      select %(run)s, segment, %(tenant)s, role, parent, parent_tokens, fracture from given where fracture is not null),
    spanned as (
      insert into span (run_id, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token)
      select %(run)s, seq, nth, %(tenant)s, kind, start_char, end_char, start_token, end_token
        from jsonb_to_recordset(%(spans)s) as s(seq bigint, nth integer, kind text, start_char integer,
                                                end_char integer, start_token integer, end_token integer))
    {TURNS} left join unnest(%(prompt_ids)s::bytea[], %(completion_ids)s::bytea[], %(logprobs)s::bytea[],
                             %(entropy)s::bytea[], %(mask)s::bytea[])
           with ordinality as t(prompt_ids, completion_ids, logprobs, entropy, mask, nth) on t.nth = g.tokens
"""
"""One statement for all turns of an append, because they are on the way of every role call and of every rollout."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn as `insert` stores it."""

    columns: dict[str, Any]
    """By the names of GIVEN, but for `tokens`."""
    spans: Sequence[dict[str, Any]]
    parts: dict[bytes, str]
    """Parts of its prompt by hash."""
    tokens: TokenColumns | None
    """None: its tokens are not known, or not kept."""

    @property
    def bare(self) -> bool:
        return self.columns["segment"] is None and not self.parts and not self.spans and self.tokens is None


async def insert(connection: Connection, fence: Fence, rows: Sequence[TurnRow]) -> None:
    """Store turns in the transaction that appended their steps."""
    traced = [row.tokens for row in rows if row.tokens is not None]
    places = iter(range(1, len(traced) + 1))
    given = [row.columns | {"tokens": next(places)} if row.tokens else row.columns for row in rows]
    values = {"run": fence.run, "tenant": fence.tenant, "turns": _jsonb(given)}
    if all(row.bare for row in rows):
        await connection.execute(BARE, values)
        return
    parts = dict(sorted(part for row in rows for part in row.parts.items()))
    more = {
        "hashes": list(parts),
        "bodies": list(parts.values()),
        "spans": _jsonb([span for row in rows for span in row.spans]),
        **{name: [getattr(tokens, name) for tokens in traced] for name in TokenColumns.__slots__},
    }
    await connection.execute(WHOLE, values | more)


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
