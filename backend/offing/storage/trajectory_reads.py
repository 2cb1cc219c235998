"""Segments with tokens, and role calls with texts, for exports and the web UI. Only reads.

Tokens are read as bytes that Postgres has concatenated per segment, so that no token becomes a
Python object on the way to a training row.
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from offing.core.packed_segment import PackedSegment, PackedSpans, PackedTurns
from offing.core.trajectory_records import (
    LocatedSpan,
    PreferencePair,
    PreferenceSource,
    RoleCallRecord,
    SegmentInfo,
    TokenRecord,
)
from offing.storage.pool import Connection
from offing.storage.segments import RoleCallTokens, StoredRoleCall, read_role_call_page, read_role_calls_by_run

READ_PACKED_SEGMENTS = """
    select wanted.nth, s.idx, s.role, s.boundary_reason, s.parent_idx, s.parent_tokens, found.*
      from unnest(%(runs)b::uuid[], %(idxs)b::integer[]) with ordinality as wanted(run, idx, nth)
           join segment s on s.run_id = wanted.run and s.idx = wanted.idx,
           lateral (
             select array_agg(seq), array_agg(number), array_agg(temperature), array_agg(top_p), array_agg(policy),
                    array_agg(weights_sha256), array_agg(engine_build), array_agg(finish_reason), array_agg(is_final),
                    array_agg(checkpoint_id), array_agg(state_key), array_agg(action_key), array_agg(quarantine),
                    array_agg(trainable), array_agg(tokenizer_sha256), array_agg(template_sha256),
                    array_agg(prompt_offset), array_agg(octet_length(prompt_ids) / 3),
                    array_agg(octet_length(completion_ids) / 3), array_agg(coalesce(octet_length(entropy), 0) / 2),
                    string_agg(prompt_ids || completion_ids, ''), string_agg(logprobs, ''),
                    coalesce(string_agg(entropy, ''), ''), string_agg(loss_mask, '')
               from (select role_call.*, step.turn as number, (sampling->>'temperature')::float8 as temperature,
                            (sampling->>'top_p')::float8 as top_p
                       from role_call join step using (run_id, seq)
                      where role_call.run_id = wanted.run and role_call.segment_idx = wanted.idx
                      and completion_ids is not null
                      order by position) as ordered
             having count(*) > 0
           ) as found
"""
"""One row per segment: its metadata, arrays with one entry per role call, and the bytes of all role
calls.
"""

READ_SPANS = """
    select wanted.run, found.*
      from unnest(%(runs)b::uuid[], %(lows)b::bigint[], %(highs)b::bigint[]) as wanted(run, low, high),
           lateral (
             select array_agg(seq), array_agg(kind), array_agg(start_token), array_agg(end_token)
               from (select seq, kind, start_token, end_token from completion_span
                      where run_id = wanted.run and seq between wanted.low and wanted.high and start_token is not null
                      order by seq, nth) as ordered
             having count(*) > 0
           ) as found
"""
"""One row per run: arrays with one entry per span of these steps, in all segments."""

LIST_SEGMENTS = """
    select run_id, idx, role, boundary_reason, parent_idx, parent_tokens from segment
     where run_id = any(%s) order by run_id, idx
"""

SHARED_FIELDS = ({f.name for f in fields(RoleCallRecord)} & {f.name for f in fields(StoredRoleCall)}) - {
    "tokens",
    "spans",
}
"""Fields that have the same name in both record types."""

LIST_CALL_STEPS = """
    select run_id, seq, step.turn, step.at, role_call.cost_usd from role_call join step using (run_id,
           seq) where run_id = any(%s)
"""

LIST_PAGE_STEPS = """
    select seq, step.turn, step.at, role_call.cost_usd from role_call join step using (run_id, seq)
     where run_id = %s and seq = any(%s)
"""

LIST_SHARED_PROMPTS = """
    with said as (
      select role_call.run_id, role_call.seq, role_call.role, role_call.state_key, role_call.completion, o.reward,
             count(*) over (partition by role_call.role, role_call.state_key) as times
        from rollout o join role_call on role_call.run_id = o.run_id
       where o.group_id = %(group)s and o.reward is not null and o.outcome is distinct from 'infra_error'
         and role_call.state_key <> '' and role_call.completion <> '' and role_call.trainable <> 'none'
         and role_call.quarantine = ''
         and role_call.is_accepted
         and (%(roles)s::text[] is null or role_call.role = any(%(roles)s)))
    select distinct on (role, state_key) role, first_value(run_id) over best, first_value(seq) over best,
           first_value(completion) over best, first_value(completion) over worst,
           first_value(reward) over best, first_value(reward) over worst, first_value(run_id) over worst
      from said where times > 1
    window best as (partition by role, state_key order by reward desc, run_id, seq),
           worst as (partition by role, state_key order by reward, run_id, seq)
"""
"""For each prompt that occurs more than once in a group: the answer with the highest reward and the
one with the lowest.
"""


async def read_packed_segments(
    connection: Connection, segments: Sequence[tuple[UUID, int]]
) -> list[tuple[UUID, PackedSegment]]:
    """Return these segments with their role calls that have tokens, in the given order.

    All must belong to one tenant. Segments without such role calls, because the run was erased
    meanwhile, are left out.
    """
    values = {"runs": [run for run, _ in segments], "idxs": [idx for _, idx in segments]}
    async with connection.cursor(binary=True) as cursor:
        rows = await (await cursor.execute(READ_PACKED_SEGMENTS, values, prepare=True)).fetchall()
        rows.sort(key=itemgetter(0))
        segment_rows: list[tuple[UUID, Sequence[Any]]] = [(segments[nth - 1][0], row) for nth, *row in rows]
        spans_by_run = {run: PackedSpans(*map(tuple, spans)) for run, *spans in await _read_spans(cursor, segment_rows)}
    return [(run, _packed_segment_from_row(row, spans_by_run.get(run, PackedSpans()))) for run, row in segment_rows]


async def _read_spans(cursor: AsyncCursor[TupleRow], rows: Sequence[tuple[UUID, Sequence[Any]]]) -> list[TupleRow]:
    """Read `READ_SPANS` from the first to the last role call of these segments."""
    seqs: dict[UUID, list[int]] = {}
    for run, row in rows:
        seqs.setdefault(run, []).extend((row[5][0], row[5][-1]))
    values = {
        "runs": list(seqs),
        "lows": [min(ends) for ends in seqs.values()],
        "highs": [max(ends) for ends in seqs.values()],
    }
    return await (await cursor.execute(READ_SPANS, values, prepare=True)).fetchall()


async def list_segments(connection: Connection, run_id: UUID) -> tuple[SegmentInfo, ...]:
    """Return all segments of a run, including those without token ids."""
    return (await list_segments_by_run(connection, [run_id])).get(run_id, ())


async def list_segments_by_run(connection: Connection, run_ids: Sequence[UUID]) -> dict[UUID, tuple[SegmentInfo, ...]]:
    """Return the segments of several runs. Runs without segments are left out."""
    by_run: dict[UUID, tuple[SegmentInfo, ...]] = {}
    for run, *row in await (await connection.execute(LIST_SEGMENTS, (list(run_ids),))).fetchall():
        by_run[run] = (*by_run.get(run, ()), SegmentInfo(*row))
    return by_run


async def list_role_calls(
    connection: Connection, run_id: UUID, roles: Sequence[str] = ()
) -> tuple[RoleCallRecord, ...]:
    """Return the role calls of a run in order, of these roles. No roles means all of them."""
    return (await list_role_calls_by_run(connection, [run_id], roles)).get(run_id, ())


async def list_role_calls_by_run(
    connection: Connection, run_ids: Sequence[UUID], roles: Sequence[str] = ()
) -> dict[UUID, tuple[RoleCallRecord, ...]]:
    """Return the role calls of several runs of a tenant. Runs without role calls are left out."""
    turns = await read_role_calls_by_run(connection, run_ids)
    rows = await (await connection.execute(LIST_CALL_STEPS, (list(turns),))).fetchall()
    steps = {(run, seq): (number, at, float(usd)) for run, seq, number, at, usd in rows}
    return {
        run: tuple(
            _build_role_call_record(turn, *steps[run, turn.seq])
            for turn in role_calls
            if not roles or turn.role in roles
        )
        for run, role_calls in turns.items()
    }


async def list_role_call_page(
    connection: Connection, run_id: UUID, after: int, limit: int
) -> tuple[tuple[RoleCallRecord, ...], int | None]:
    """Return at most `limit` role calls of a run after step `after`, and the step to continue from.

    `None` means that these were the last.
    """
    calls, following = await read_role_call_page(connection, run_id, after, limit)
    rows = await (await connection.execute(LIST_PAGE_STEPS, (run_id, [call.seq for call in calls]))).fetchall()
    steps = {seq: (number, at, float(usd)) for seq, number, at, usd in rows}
    return tuple(_build_role_call_record(call, *steps[call.seq]) for call in calls), following


async def list_preferences(connection: Connection, group_id: UUID, roles: Sequence[str] = ()) -> list[PreferencePair]:
    """Return a preference pair for each prompt that several rollouts of a group share exactly.

    The pair consists of the answer with the highest reward and the one with the lowest. Prompts
    with equal answers or equal rewards are left out.
    """
    values = {"group": group_id, "roles": list(roles) or None}
    rows = await (await connection.execute(LIST_SHARED_PROMPTS, values)).fetchall()
    pairs: list[PreferencePair] = []
    role_calls: dict[UUID, dict[int, RoleCallRecord]] = {}
    for role, run, seq, chosen, rejected, chosen_reward, rejected_reward, other in rows:
        if chosen == rejected or chosen_reward <= rejected_reward:
            continue
        if run not in role_calls:
            role_calls = {run: {talk.seq: talk for talk in await list_role_calls(connection, run)}}
        pairs.append(
            PreferencePair(
                PreferenceSource.REWARD,
                group_id,
                role,
                role_calls[run][seq].messages,
                chosen,
                rejected,
                chosen_reward,
                rejected_reward,
                run,
                other,
            )
        )
    return pairs


def _packed_segment_from_row(row: Sequence[Any], spans: PackedSpans) -> PackedSegment:
    """Convert a row of `READ_PACKED_SEGMENTS` from `idx` on. `spans` are those of its run."""
    turns = PackedTurns(*map(tuple, row[5:18]))
    trainable, tokenizer, template, offsets, prompts, completions, entropies = map(tuple, row[18:25])
    return PackedSegment(
        segment_info=SegmentInfo(*row[:5]),
        turns=turns,
        trainable=trainable,
        tokenizer_sha256=tokenizer,
        template_sha256=template,
        offsets=offsets,
        prompt_counts=prompts,
        completion_counts=completions,
        entropy_counts=entropies,
        token_ids=row[25],
        logprobs=row[26],
        entropy=row[27],
        loss_mask=row[28],
        spans=_spans_of_calls(spans, frozenset(turns.seq)),
    )


def _spans_of_calls(spans: PackedSpans, seqs: frozenset[int]) -> PackedSpans:
    """Return the spans of these role calls."""
    if seqs.issuperset(spans.seq):
        return spans
    own = [one for one in zip(spans.seq, spans.kind, spans.start, spans.end, strict=True) if one[0] in seqs]
    return PackedSpans(*zip(*own, strict=True)) if own else PackedSpans()


def _build_role_call_record(
    role_call: StoredRoleCall, turn_number: int, at: datetime, cost_usd: float
) -> RoleCallRecord:
    return RoleCallRecord(
        turn=turn_number,
        at=at,
        cost_usd=cost_usd,
        tokens=_build_token_record(role_call.tokens),
        spans=tuple(LocatedSpan(s.kind, s.start, s.end, s.start_token, s.end_token) for s in role_call.spans),
        **{name: getattr(role_call, name) for name in SHARED_FIELDS},
    )


def _build_token_record(tokens: RoleCallTokens | None) -> TokenRecord | None:
    if tokens is None:
        return None
    return TokenRecord(
        tokens.offset, tokens.prompt_ids, tokens.completion_ids, tokens.logprobs, tokens.loss_mask, tokens.entropy
    )
