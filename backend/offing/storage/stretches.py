"""Segments with their tokens, and turns with their texts, as exports and the page read them. Reads only.

Tokens come as bytes, a segment's put together by Postgres, so that no token is ever a Python object of its own on the
way to a row.
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from offing.core.episode import Preference, SegmentHead, SpanAt, Talk, Tokens
from offing.core.packed import PackedSegment, Spans, Turns
from offing.storage.pool import Connection
from offing.storage.segments import StoredTurn, TurnTokens, turns_by_run

TURNS = """
    select wanted.nth, s.idx, s.role, s.fracture, s.parent_idx, s.parent_tokens, found.*
      from unnest(%(runs)b::uuid[], %(idxs)b::integer[]) with ordinality as wanted(run, idx, nth)
           join segment s on s.run_id = wanted.run and s.idx = wanted.idx,
           lateral (
             select array_agg(seq), array_agg(number), array_agg(temperature), array_agg(top_p), array_agg(policy),
                    array_agg(weights_sha256), array_agg(engine_build), array_agg(finish), array_agg(done),
                    array_agg(checkpoint_id), array_agg(state_key), array_agg(action_key), array_agg(quarantine),
                    array_agg(trainable), array_agg(tokenizer_sha256), array_agg(template_sha256),
                    array_agg(prompt_offset), array_agg(octet_length(prompt_ids) / 3),
                    array_agg(octet_length(completion_ids) / 3), array_agg(coalesce(octet_length(entropy), 0) / 2),
                    string_agg(prompt_ids || completion_ids, ''), string_agg(logprobs, ''),
                    coalesce(string_agg(entropy, ''), ''), string_agg(mask, '')
               from (select turn.*, step.turn as number, (sampling->>'temperature')::float8 as temperature,
                            (sampling->>'top_p')::float8 as top_p
                       from turn join step using (run_id, seq)
                      where turn.run_id = wanted.run and turn.segment = wanted.idx and completion_ids is not null
                      order by place) as ordered
             having count(*) > 0
           ) as found
"""
"""A row a segment: its head, arrays with an entry a turn, and the turns' bytes end to end."""

SPANS = """
    select wanted.run, found.*
      from unnest(%(runs)b::uuid[], %(lows)b::bigint[], %(highs)b::bigint[]) as wanted(run, low, high),
           lateral (
             select array_agg(seq), array_agg(kind), array_agg(start_token), array_agg(end_token)
               from (select seq, kind, start_token, end_token from span
                      where run_id = wanted.run and seq between wanted.low and wanted.high and start_token is not null
                      order by seq, nth) as ordered
             having count(*) > 0
           ) as found
"""
"""A row a run: arrays with an entry a span of these steps, whatever their segment."""

HEADS = """
    select run_id, idx, role, fracture, parent_idx, parent_tokens from segment
     where run_id = any(%s) order by run_id, idx
"""

SAME = ({f.name for f in fields(Talk)} & {f.name for f in fields(StoredTurn)}) - {"tokens", "spans"}
"""What a turn says in the same words here and there."""

STEPS = """
    select run_id, seq, step.turn, step.at, turn.usd from turn join step using (run_id, seq) where run_id = any(%s)
"""

SHARED_PROMPTS = """
    with said as (
      select turn.run_id, turn.seq, turn.role, turn.state_key, turn.completion, o.reward,
             count(*) over (partition by turn.role, turn.state_key) as times
        from rollout o join turn on turn.run_id = o.run_id
       where o.group_id = %(group)s and o.reward is not null and o.outcome is distinct from 'infra_error'
         and turn.state_key <> '' and turn.completion <> '' and turn.trainable <> 'none' and turn.quarantine = ''
         and turn.accepted
         and (%(roles)s::text[] is null or turn.role = any(%(roles)s)))
    select distinct on (role, state_key) role, first_value(run_id) over best, first_value(seq) over best,
           first_value(completion) over best, first_value(completion) over worst,
           first_value(reward) over best, first_value(reward) over worst, first_value(run_id) over worst
      from said where times > 1
    window best as (partition by role, state_key order by reward desc, run_id, seq),
           worst as (partition by role, state_key order by reward, run_id, seq)
"""
"""Of each prompt that occurs more than once in a group, the answer that led to most and the one that led to least."""


async def segments(connection: Connection, wanted: Sequence[tuple[UUID, int]]) -> list[tuple[UUID, PackedSegment]]:
    """The token-bearing turns of these segments, in the order asked for; all of the same tenant.

    A segment without any, because its run was erased meanwhile, is left out.
    """
    values = {"runs": [run for run, _ in wanted], "idxs": [idx for _, idx in wanted]}
    async with connection.cursor(binary=True) as cursor:
        rows = await (await cursor.execute(TURNS, values, prepare=True)).fetchall()
        rows.sort(key=itemgetter(0))
        found: list[tuple[UUID, Sequence[Any]]] = [(wanted[nth - 1][0], row) for nth, *row in rows]
        said = {run: Spans(*map(tuple, spans)) for run, *spans in await _said(cursor, found)}
    return [(run, _segment(row, said.get(run, Spans()))) for run, row in found]


async def _said(cursor: AsyncCursor[TupleRow], found: Sequence[tuple[UUID, Sequence[Any]]]) -> list[TupleRow]:
    """Rows of `SPANS`, from the first turn of these segments to the last."""
    seqs: dict[UUID, list[int]] = {}
    for run, row in found:
        seqs.setdefault(run, []).extend((row[5][0], row[5][-1]))
    values = {
        "runs": list(seqs),
        "lows": [min(ends) for ends in seqs.values()],
        "highs": [max(ends) for ends in seqs.values()],
    }
    return await (await cursor.execute(SPANS, values, prepare=True)).fetchall()


async def heads(connection: Connection, run: UUID) -> tuple[SegmentHead, ...]:
    """All segments of a run, those without ids included."""
    return (await heads_by_run(connection, [run])).get(run, ())


async def heads_by_run(connection: Connection, runs: Sequence[UUID]) -> dict[UUID, tuple[SegmentHead, ...]]:
    """The same of several runs, read at once. A run without segments is not there."""
    found: dict[UUID, tuple[SegmentHead, ...]] = {}
    for run, *row in await (await connection.execute(HEADS, (list(runs),))).fetchall():
        found[run] = (*found.get(run, ()), SegmentHead(*row))
    return found


async def talks(connection: Connection, run: UUID, roles: Sequence[str] = ()) -> tuple[Talk, ...]:
    """A run's turns in order, of these roles; of all of them when none is named."""
    return (await talks_by_run(connection, [run], roles)).get(run, ())


async def talks_by_run(
    connection: Connection, runs: Sequence[UUID], roles: Sequence[str] = ()
) -> dict[UUID, tuple[Talk, ...]]:
    """The same of several runs of a tenant, read at once. A run without turns is not there."""
    turns = await turns_by_run(connection, runs)
    rows = await (await connection.execute(STEPS, (list(turns),))).fetchall()
    steps = {(run, seq): (number, at, float(usd)) for run, seq, number, at, usd in rows}
    return {
        run: tuple(_talk(turn, *steps[run, turn.seq]) for turn in said if not roles or turn.role in roles)
        for run, said in turns.items()
    }


async def preferences(connection: Connection, group: UUID, roles: Sequence[str] = ()) -> list[Preference]:
    """For every prompt that answers of a group share to the letter, the one that led to most and the one to least.

    Prompts whose answers, or whose rewards, are all the same say nothing and are left out.
    """
    values = {"group": group, "roles": list(roles) or None}
    rows = await (await connection.execute(SHARED_PROMPTS, values)).fetchall()
    found: list[Preference] = []
    said: dict[UUID, dict[int, Talk]] = {}
    for role, run, seq, chosen, rejected, most, least, other in rows:
        if chosen == rejected or most <= least:
            continue
        if run not in said:
            said = {run: {talk.seq: talk for talk in await talks(connection, run)}}
        found.append(Preference(group, role, said[run][seq].messages, chosen, rejected, most, least, run, other))
    return found


def _segment(row: Sequence[Any], said: Spans) -> PackedSegment:
    """A row of `TURNS` from `idx` on. `said`: spans of its run."""
    turns = Turns(*map(tuple, row[5:18]))
    trainable, tokenizer, template, offsets, prompts, completions, entropies = map(tuple, row[18:25])
    return PackedSegment(
        head=SegmentHead(*row[:5]),
        turns=turns,
        trainable=trainable,
        tokenizer_sha256=tokenizer,
        template_sha256=template,
        offsets=offsets,
        prompt_counts=prompts,
        completion_counts=completions,
        entropy_counts=entropies,
        ids=row[25],
        logprobs=row[26],
        entropy=row[27],
        mask=row[28],
        spans=_of(said, frozenset(turns.seq)),
    )


def _of(said: Spans, seqs: frozenset[int]) -> Spans:
    """The spans of these turns."""
    if seqs.issuperset(said.seq):
        return said
    own = [one for one in zip(said.seq, said.kind, said.start, said.end, strict=True) if one[0] in seqs]
    return Spans(*zip(*own, strict=True)) if own else Spans()


def _talk(turn: StoredTurn, number: int, at: datetime, usd: float) -> Talk:
    return Talk(
        number=number,
        at=at,
        usd=usd,
        tokens=_tokens(turn.tokens),
        spans=tuple(SpanAt(s.kind, s.start, s.end, s.start_token, s.end_token) for s in turn.spans),
        **{name: getattr(turn, name) for name in SAME},
    )


def _tokens(stored: TurnTokens | None) -> Tokens | None:
    if stored is None:
        return None
    return Tokens(stored.offset, stored.prompt_ids, stored.completion_ids, stored.logprobs, stored.mask, stored.entropy)
