"""Segments with their tokens, and turns with their texts, as exports and the page read them. Reads only.

Tokens come as bytes, put together by Postgres, so that no token is ever a Python object of its own on the way to a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from io import BytesIO
from itertools import pairwise
from typing import Any
from uuid import UUID

from offing.core.episode import Preference, SegmentHead, SpanAt, Talk, Tokens
from offing.core.packed import PackedSegment, Spans, Turns
from offing.storage.pool import Connection
from offing.storage.segments import StoredTurn, TurnTokens, turns_of

TURNS = """
    select array_agg(nth), array_agg(seq), array_agg(number), array_agg(temperature), array_agg(top_p),
           array_agg(policy), array_agg(weights_sha256), array_agg(engine_build), array_agg(finish), array_agg(done),
           array_agg(checkpoint_id), array_agg(state_key), array_agg(action_key), array_agg(quarantine),
           array_agg(trainable), array_agg(tokenizer_sha256), array_agg(template_sha256), array_agg(prompt_offset),
           array_agg(octet_length(prompt_ids) / 3), array_agg(octet_length(completion_ids) / 3),
           array_agg(coalesce(octet_length(entropy), 0) / 2), string_agg(prompt_ids || completion_ids, ''),
           string_agg(logprobs, ''), coalesce(string_agg(entropy, ''), ''), string_agg(mask, '')
      from (select wanted.nth, found.*
              from unnest(%(runs)s::uuid[], %(idxs)s::integer[]) with ordinality as wanted(run, idx, nth),
                   lateral (
                     select turn.*, step.turn as number, (sampling->>'temperature')::float8 as temperature,
                            (sampling->>'top_p')::float8 as top_p
                       from turn join step using (run_id, seq)
                      where turn.run_id = wanted.run and turn.segment = wanted.idx and completion_ids is not null
                      order by place
                   ) as found
             order by wanted.nth, found.place) as ordered
"""
"""One row: arrays with an entry a turn, and the turns' bytes end to end, because a row a segment is a wake-up each."""

SPANS = """
    select coalesce(array_agg(nth), '{}'), coalesce(array_agg(seq), '{}'), coalesce(array_agg(kind), '{}'),
           coalesce(array_agg(start_token), '{}'), coalesce(array_agg(end_token), '{}')
      from (select wanted.nth, found.*
              from unnest(%(runs)s::uuid[], %(idxs)s::integer[]) with ordinality as wanted(run, idx, nth),
                   lateral (
                     select seq, kind, start_token, end_token
                       from turn join span using (run_id, seq)
                      where turn.run_id = wanted.run and turn.segment = wanted.idx and completion_ids is not null
                        and start_token is not null
                      order by seq, span.nth
                   ) as found
             order by wanted.nth) as ordered
"""
"""One row: arrays with an entry a span."""

HEADS_OF = """
    select s.run_id, s.idx, s.role, s.fracture, s.parent_idx, s.parent_tokens
      from unnest(%(runs)s::uuid[], %(idxs)s::integer[]) as wanted(run, idx)
           join segment s on s.run_id = wanted.run and s.idx = wanted.idx
"""

HEADS = "select idx, role, fracture, parent_idx, parent_tokens from segment where run_id = %s order by idx"

SAME = ({f.name for f in fields(Talk)} & {f.name for f in fields(StoredTurn)}) - {"tokens", "spans"}
"""What a turn says in the same words here and there."""

STEPS = """
    select turn.seq, step.turn, step.at, turn.usd from turn join step using (run_id, seq) where turn.run_id = %s
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
        heads = await (await cursor.execute(HEADS_OF, values)).fetchall()
        (turns,) = await (await cursor.execute(TURNS, values, prepare=True)).fetchall()
        (spans,) = await (await cursor.execute(SPANS, values, prepare=True)).fetchall()
    known = {(head[0], head[1]): SegmentHead(*head[1:]) for head in heads}
    return [] if turns[0] is None else _packed(wanted, known, turns, spans)


async def heads(connection: Connection, run: UUID) -> tuple[SegmentHead, ...]:
    """All segments of a run, those without ids included."""
    return tuple(SegmentHead(*row) for row in await (await connection.execute(HEADS, (run,))).fetchall())


async def talks(connection: Connection, run: UUID, roles: Sequence[str] = ()) -> tuple[Talk, ...]:
    """A run's turns in order, of these roles; of all of them when none is named."""
    turns = [turn for turn in await turns_of(connection, run) if not roles or turn.role in roles]
    rows = await (await connection.execute(STEPS, (run,))).fetchall()
    steps = {seq: (number, at, float(usd)) for seq, number, at, usd in rows}
    return tuple(_talk(turn, *steps[turn.seq]) for turn in turns)


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


def _packed(
    wanted: Sequence[tuple[UUID, int]],
    heads: Mapping[tuple[UUID, int], SegmentHead],
    turns: Sequence[Any],
    spans: Sequence[Any],
) -> list[tuple[UUID, PackedSegment]]:
    """Rows of `TURNS` and `SPANS` taken apart where segments end."""
    tokens = [BytesIO(column) for column in turns[21:]]
    said = {nth: Spans(*parts) for nth, parts in _cut(spans)}
    found: list[tuple[UUID, PackedSegment]] = []
    for nth, parts in _cut(turns[:21]):
        run, idx = wanted[nth - 1]
        found.append((run, _segment(heads[run, idx], parts, tokens, said.get(nth, Spans()))))
    return found


def _cut(columns: Sequence[Sequence[Any]]) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
    """Columns that belong together, cut where the value of the first changes, and that value."""
    nths, *others = columns
    firsts = [at for at, nth in enumerate(nths) if not at or nth != nths[at - 1]]
    for first, end in pairwise((*firsts, len(nths))):
        yield nths[first], [tuple(column[first:end]) for column in others]


def _segment(
    head: SegmentHead, parts: Sequence[tuple[Any, ...]], tokens: Sequence[BytesIO], spans: Spans
) -> PackedSegment:
    """The next segment. `parts`: its columns; `tokens`: all bytes, read up to where its own begin."""
    trainable, tokenizer, template, offsets, prompts, completions, entropies = parts[13:]
    n = sum(completions)
    sizes = (3 * (sum(prompts) + n), 4 * n, 2 * sum(entropies), sum((count + 7) // 8 for count in completions))
    ids, logprobs, entropy, mask = (column.read(size) for column, size in zip(tokens, sizes, strict=True))
    return PackedSegment(
        head=head,
        turns=Turns(*parts[:13]),
        trainable=trainable,
        tokenizer_sha256=tokenizer,
        template_sha256=template,
        offsets=offsets,
        prompt_counts=prompts,
        completion_counts=completions,
        entropy_counts=entropies,
        ids=ids,
        logprobs=logprobs,
        entropy=entropy,
        mask=mask,
        spans=spans,
    )


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
