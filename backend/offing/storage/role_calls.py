"""Role calls as rows: prompt, completion, sampling, usage, tokens, and how they may be used for training.

Prompt parts are stored once by hash, messages and tokens once per segment. The parsed output is in the step of the role
call. A rejected completion is a role call, too, in a separate segment. This module stores role calls; `segments` reads
them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.model import EngineResponse, FailedAttempt, Message, Usage
from offing.core.role_call import (
    CallOrigin,
    RejectedCompletion,
    SegmentPosition,
    attempt_to_json,
    extract_rejected_completions,
)
from offing.core.run import FencingToken
from offing.core.tokens import CompletionSpan, SpanKind, TokenSpan, TokenTrace, locate_token_spans
from offing.storage.pool import Connection
from offing.storage.steps import FIRST_SEQ
from offing.storage.token_columns import TokenColumns, build_token_columns

INPUT_ROWS = """
    given as (
      select * from jsonb_to_recordset(%(role_calls)s) as g(
        seq bigint, role text, engine text, superstep integer, model text, prompt jsonb, completion text,
        sampling jsonb, prompt_tokens integer, completion_tokens integer, cached_prompt_tokens integer,
        reasoning_tokens integer, cost_usd numeric, priced boolean,
        failed_attempts jsonb, trainable text, trainable_reason text, segment_idx integer, position integer,
        prompt_kept integer, boundary_reason text, parent_idx integer, parent_tokens integer, prompt_offset integer,
        policy text, policy_name text, policy_version integer, weights_sha256 text, tokenizer_sha256 text,
        template_sha256 text, engine_build text, finish_reason text, state_key text, action_key text,
        is_accepted boolean, attempt integer,
        problem text, tokens integer))
"""

INSERT_ROLE_CALLS = f"""
    insert into role_call (run_id, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens,
                      completion_tokens, cached_prompt_tokens, reasoning_tokens, cost_usd, priced, failed_attempts,
                      trainable, trainable_reason, segment_idx,
                      position,
                      prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, loss_mask, policy,
                      policy_version_id, weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish_reason,
                      checkpoint_id, state_key, action_key, is_accepted, attempt, problem)
    select %(run)s, {FIRST_SEQ} + seq, %(tenant)s, role, engine, model, prompt, completion, sampling, prompt_tokens,
           completion_tokens, cached_prompt_tokens, reasoning_tokens, cost_usd, priced, failed_attempts, trainable,
           trainable_reason, segment_idx, position,
           prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, loss_mask, policy,
           (select id from policy_version p
             where p.tenant_id = %(tenant)s and p.name = g.policy_name and p.version = g.policy_version),
           weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish_reason,
           (select checkpoint_id from checkpoint c
             where c.run_id = %(run)s and c.ns = '' and c.superstep < g.superstep
             order by c.superstep desc, c.nth desc limit 1),
           state_key, action_key, is_accepted, attempt, problem
      from given g
"""

INSERT_BARE_CALLS = f"""
    with {INPUT_ROWS}
    {INSERT_ROLE_CALLS} cross join (select null::bytea as prompt_ids, null::bytea as completion_ids, null::bytea as
    logprobs,
                               null::bytea as entropy, null::bytea as loss_mask) as t
"""
"""For role calls without segment, spans, prompt parts and tokens."""

INSERT_FULL_CALLS = f"""
    with {INPUT_ROWS},
    part as (
      insert into text_part (tenant_id, sha256, body)
      select %(tenant)s, p.sha256, p.body from unnest(%(hashes)s::bytea[], %(bodies)s::text[]) as p(sha256, body)
      on conflict do nothing),
    opened as (
      insert into segment (run_id, idx, tenant_id, role, parent_idx, parent_tokens, boundary_reason)
      select %(run)s, segment_idx, %(tenant)s, role, parent_idx, parent_tokens, boundary_reason
        from given where boundary_reason is not null),
    spanned as (
      insert into completion_span (run_id, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token)
      select %(run)s, {FIRST_SEQ} + seq, nth, %(tenant)s, kind, start_char, end_char, start_token,
             end_token
        from jsonb_to_recordset(%(spans)s) as s(seq bigint, nth integer, kind text, start_char integer,
                                                end_char integer, start_token integer, end_token integer))
    {INSERT_ROLE_CALLS} left join unnest(%(prompt_ids)s::bytea[], %(completion_ids)s::bytea[], %(logprobs)s::bytea[],
                             %(entropy)s::bytea[], %(loss_mask)s::bytea[])
           with ordinality as t(prompt_ids, completion_ids, logprobs, entropy, loss_mask, nth) on t.nth = g.tokens
"""
"""One statement for all role calls of an append, because it is executed for every role call and
every rollout.
"""


@dataclass(frozen=True, slots=True)
class RoleCallRow:
    """A role call as `insert_role_calls` stores it."""

    columns: dict[str, Any]
    """Values by the names of INPUT_ROWS, without `tokens`."""
    spans: Sequence[dict[str, Any]]
    parts: dict[bytes, str]
    """Prompt parts by hash."""
    tokens: TokenColumns | None
    """`None` if the tokens are not known or not stored."""

    @property
    def is_bare(self) -> bool:
        return self.columns["segment_idx"] is None and not self.parts and not self.spans and self.tokens is None


async def insert_role_calls(
    connection: Connection, fence: FencingToken, rows: Sequence[RoleCallRow], *, appended: int | None = None
) -> None:
    """Store role calls in the transaction that appended their steps.

    `appended` is the number of steps that the transaction appended last. If it is given, the seqs of the rows are the
    indices of their steps among them, starting with 0.
    """
    traced = [row.tokens for row in rows if row.tokens is not None]
    numbers = iter(range(1, len(traced) + 1))
    parameters = [row.columns | {"tokens": next(numbers)} if row.tokens else row.columns for row in rows]
    values = {"run": fence.run_id, "tenant": fence.tenant_id, "appended": appended, "role_calls": _jsonb(parameters)}
    if all(row.is_bare for row in rows):
        await connection.execute(INSERT_BARE_CALLS, values)
        return
    parts = dict(sorted(part for row in rows for part in row.parts.items()))
    more = {
        "hashes": list(parts),
        "bodies": list(parts.values()),
        "spans": _jsonb([span for row in rows for span in row.spans]),
        **{name: [getattr(tokens, name) for tokens in traced] for name in TokenColumns.__slots__},
    }
    await connection.execute(INSERT_FULL_CALLS, values | more)


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)


MARK_FINAL_CALLS = """
    update role_call set is_final = seq = any(%(seqs)s)
     where run_id = %(run)s and segment_idx is not null and is_final <> (seq = any(%(seqs)s))
"""

EXCLUDE_FROM_TRAINING = """
    update role_call set trainable = 'none', trainable_reason = 'the flow took it out of its context unseen'
     where run_id = %s and seq = any(%s)
"""


@dataclass(frozen=True, slots=True)
class Trainability:
    """How a role call may be used for training, and why not for more."""

    method: str
    """rl, sft or none."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _CallContent:
    """Prompt and completion of an accepted or a rejected role call."""

    model: str
    messages: tuple[Message, ...]
    text: str
    sampling: dict[str, Any]
    usage: Usage
    """Usage, without that of attempts that are recorded as separate role calls."""
    trace: TokenTrace | None
    spans: tuple[CompletionSpan, ...]
    trainability: Trainability
    action_text: str
    """Text that is equal for equal decisions."""
    attempts: tuple[FailedAttempt, ...] = ()
    attempt: int = 1
    problem: str = ""
    """Why the completion was rejected. Empty means that it was accepted."""


def classify_trainability(response: EngineResponse) -> Trainability:
    """Return how a response may be used for training. Text alone allows SFT; RL needs token ids and logprobs."""
    if not response.messages:
        return Trainability("none", "the engine is not a language model")
    if response.trace is not None:
        return Trainability("rl")
    if not response.text:
        return Trainability("none", response.missing_trace_reason or "the engine wrote nothing")
    return Trainability("sft", response.missing_trace_reason or "the engine gives no token ids")


def build_role_call_row(
    seq: int, origin: CallOrigin, response: EngineResponse, position: SegmentPosition | None
) -> RoleCallRow:
    """Build the row of the role call with step `seq`.

    If `position` is `None`, it belongs to no segment and its tokens are not stored. Raises CorruptTokensError if its
    tokens are inconsistent.
    """
    return _build_row(seq, origin, _accepted_content(response if position else replace(response, trace=None)), position)


def build_rejected_row(
    seq: int, origin: CallOrigin, rejection: RejectedCompletion, position: SegmentPosition
) -> RoleCallRow:
    """Build the row of a rejected completion with step `seq`. Raises CorruptTokensError."""
    return _build_row(seq, origin, _rejected_content(rejection), position)


def _build_row(seq: int, origin: CallOrigin, content: _CallContent, position: SegmentPosition | None) -> RoleCallRow:
    trace = content.trace if position else None
    columns = {
        "seq": seq,
        "role": origin.role,
        "engine": origin.engine,
        "superstep": origin.superstep,
        **_content_columns(content, position),
        **_position_columns(position),
        **_sampling_columns(trace, position),
    }
    parts = {_hash_part(part): part for message in content.messages for part in message.parts}
    return RoleCallRow(columns, _span_rows(seq, content), parts, _token_columns(content, position))


async def mark_final_calls(connection: Connection, run_id: UUID, seqs: Sequence[int]) -> None:
    """Mark the role calls with which the roles of a run ended it. All other role calls of the run are unmarked."""
    await connection.execute(MARK_FINAL_CALLS, {"run": run_id, "seqs": list(seqs)})


async def exclude_from_training(connection: Connection, run_id: UUID, seqs: Sequence[int]) -> None:
    """Exclude role calls from training. They stay on record."""
    await connection.execute(EXCLUDE_FROM_TRAINING, (run_id, list(seqs)))


def _accepted_content(response: EngineResponse) -> _CallContent:
    return _CallContent(
        model=response.model,
        messages=response.messages,
        text=response.text,
        sampling=response.sampling,
        usage=response.usage - sum((r.attempt.usage for r in extract_rejected_completions(response.attempts)), Usage()),
        trace=response.trace,
        spans=response.spans,
        trainability=classify_trainability(response),
        action_text=response.output.model_dump_json(),
        attempts=response.attempts,
        attempt=len(response.attempts) + 1,
    )


def _rejected_content(rejection: RejectedCompletion) -> _CallContent:
    """Return the content of a rejected completion as one span. NUL characters are replaced, because Postgres cannot
    store them.
    """
    attempt, sampled = rejection.attempt, rejection.completion
    trace, text = sampled.trace, sampled.trace.text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return _CallContent(
        model=sampled.model,
        messages=sampled.messages,
        text=text,
        sampling=sampled.sampling,
        usage=attempt.usage,
        trace=trace,
        spans=(CompletionSpan(SpanKind.TEXT, 0, len(text)),),
        trainability=Trainability("rl"),
        action_text=text,
        attempt=rejection.attempt_number,
        problem=attempt.message or attempt.failure,
    )


def _content_columns(content: _CallContent, position: SegmentPosition | None) -> dict[str, Any]:
    new = content.messages[position.kept_messages :] if position else content.messages
    return {
        "model": content.model,
        "prompt": [[m.role, [_hash_part(part).hex() for part in m.parts]] for m in new],
        "completion": content.text,
        "sampling": content.sampling,
        "prompt_tokens": content.usage.prompt_tokens,
        "completion_tokens": content.usage.completion_tokens,
        "cached_prompt_tokens": content.usage.cached_prompt_tokens,
        "reasoning_tokens": content.usage.reasoning_tokens,
        "cost_usd": str(content.usage.cost_usd),
        "priced": content.usage.priced,
        "failed_attempts": [attempt_to_json(a) for a in content.attempts],
        "trainable": content.trainability.method,
        "trainable_reason": content.trainability.reason,
        "state_key": _content_key(*(f"{m.role}\0{m.text}" for m in content.messages)) if content.messages else "",
        "action_key": _content_key(content.action_text),
        "is_accepted": not content.problem,
        "attempt": content.attempt,
        "problem": content.problem,
    }


def _position_columns(position: SegmentPosition | None) -> dict[str, Any]:
    return {
        "segment_idx": position.segment_idx if position else None,
        "position": position.position if position else 0,
        "prompt_kept": position.kept_messages if position else 0,
        "boundary_reason": position.boundary_reason if position else None,
        "parent_idx": position.parent_idx if position else None,
        "parent_tokens": position.shared_tokens if position else None,
    }


def _token_columns(content: _CallContent, position: SegmentPosition | None) -> TokenColumns | None:
    if content.trace is None or position is None:
        return None
    return build_token_columns(
        content.trace, content.trace.text if content.problem else content.text, position.kept_tokens
    )


def _sampling_columns(trace: TokenTrace | None, position: SegmentPosition | None) -> dict[str, Any]:
    name, version = _split_policy_label(trace.policy if trace else "")
    return {
        "prompt_offset": position.kept_tokens if trace and position else None,
        "policy": trace.policy if trace else "",
        "policy_name": name,
        "policy_version": version,
        "weights_sha256": trace.weights_sha256 if trace else "",
        "tokenizer_sha256": trace.tokenizer_sha256 if trace else "",
        "template_sha256": trace.template_sha256 if trace else "",
        "engine_build": trace.engine_build if trace else "",
        "finish_reason": trace.finish_reason if trace else "",
    }


def _span_rows(seq: int, content: _CallContent) -> list[dict[str, Any]]:
    return [
        {
            "seq": seq,
            "nth": nth,
            "kind": span.kind,
            "start_char": span.start,
            "end_char": span.end,
            "start_token": tokens.start if tokens else None,
            "end_token": tokens.end if tokens else None,
        }
        for nth, (span, tokens) in enumerate(zip(content.spans, _locate_spans(content), strict=True))
    ]


def _locate_spans(content: _CallContent) -> Sequence[TokenSpan | None]:
    """Return the token spans. A rejected completion is one span of all its ids."""
    if content.trace is None or not content.spans:
        return [None] * len(content.spans)
    if content.problem:
        return [TokenSpan(SpanKind.TEXT, 0, len(content.trace.completion_ids))]
    return locate_token_spans(content.text, content.trace.token_bytes, content.spans)


def _split_policy_label(policy: str) -> tuple[str, int | None]:
    """Return the name and the number of a policy version. A number of `None` means that it is not a registered one."""
    name, _, version = policy.rpartition("@")
    is_number = version.isascii() and version.isdecimal() and len(version) < 10
    return (name, int(version)) if is_number else (policy, None)


def _content_key(*parts: str) -> str:
    """Return a key that is equal for equal parts in all runs."""
    return hashlib.blake2b("\0\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _hash_part(part: str) -> bytes:
    return hashlib.sha256(part.encode()).digest()
