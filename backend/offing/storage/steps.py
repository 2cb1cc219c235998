"""The log of a run. The only home of appending: it owns the sequence, and nobody appends without the guard.

Knows what a step looks like as a row, and nothing of what the kinds mean.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from offing.core.errors import AlreadyRecorded, Fenced
from offing.core.run import Fence
from offing.core.step import CallKey, Step, StepDraft, StepKind, place_step, shortened
from offing.core.usage import UsageDelta
from offing.storage.fencing import OURS, ours
from offing.storage.pool import Connection

COLUMNS = "seq, kind, title, payload, label, detail, ok, ms, tokens, turn, at, fence, superstep, path, ordinal, digest"

PLACE = """
    placed as (
      insert into step (run_id, seq, tenant_id, fence, kind, label, title, detail, ok, ms, tokens, turn,
                        superstep, path, ordinal, digest, payload)
      select guard.id, guard.base + d.nth - 1, guard.tenant_id, guard.fence,
             d.v->>'kind', d.v->>'label', d.v->>'title', d.v->>'detail', (d.v->>'ok')::boolean, (d.v->>'ms')::integer,
             (d.v->>'tokens')::integer, (d.v->>'turn')::integer,
             (d.v->>'superstep')::integer, d.v->>'path', (d.v->>'ordinal')::integer, d.v->>'digest', d.v->'payload'
        from guard, jsonb_array_elements(%(drafts)s) with ordinality as d(v, nth)
      returning seq, at)
    select seq, at from placed order by seq
"""
"""Rows in the order given, from the place that `guard` has taken in the sequence."""

APPEND = f"""
    with guard as (
      update run
         set next_seq = next_seq + %(n)s,
             progress_seq = case when %(keyed)s then next_seq + %(n)s - 1 else progress_seq end,
             turns = greatest(turns, %(turns)s), tokens = tokens + %(tokens)s, usd = usd + %(usd)s,
             work_seconds = work_seconds + %(seconds)s, lease_until = clock_timestamp() + %(term)s::interval
       where {OURS}
      returning id, tenant_id, fence, next_seq - %(n)s as base),
    {PLACE}
"""
"""A worker's append: takes the place, proves ownership, books what was spent and renews the lease in one statement. The
fence proves ownership; a lease that has passed keeps nobody out whose run nobody else has claimed."""

APPEND_UNOWNED = f"""
    with guard as (
      update run set next_seq = next_seq + %(n)s where id = %(run)s
      returning id, tenant_id, 0::bigint as fence, next_seq - %(n)s as base),
    {PLACE}
"""
"""An append from outside any claim: the API's own transaction, which has locked the run for what it does."""

AFTER = f"select {COLUMNS} from step where run_id = %s and seq > %s order by seq limit %s"

JOURNAL = f"select {COLUMNS} from step where run_id = %s and superstep > %s order by seq"

BY_SEQ = f"select {COLUMNS} from step where run_id = %s and seq = any(%s)"

LAST_OF_KIND = f"""
    select * from (select {COLUMNS} from step where run_id = %s and kind = %s order by seq desc limit %s) as latest
     order by seq
"""

LAST_UPGRADE = """
    select coalesce(max(seq), 0) from step where run_id = %s and kind = 'resumed' and payload->>'after' = 'upgrade'
"""

OF_KINDS = f"select {COLUMNS} from step where run_id = %s and kind = any(%s) and seq > %s order by seq limit %s"

MESSAGES = f"select {COLUMNS} from step where run_id = %s and kind = 'human' and seq > %s order by seq"

RAN = """
    case when (payload->'own')::bool then 'graph:' else '' end
        || coalesce(payload->'instead'->>'tool', payload->>'tool')
"""
"""The tool that ran, as rules name it."""

TOOLS_USED = f"""
    select {RAN}, count(*) from step
     where run_id = %s and kind = 'tool' and payload->>'rule' <> '' and payload->>'status' <> 'denied' group by 1
"""
"""Calls that the policy let through, by the tool that ran."""

TOOLS_ANSWERED = f"""
    select {RAN},
           sum(octet_length((payload->'content')::text))::bigint
      from step where run_id = %s and kind = 'tool' and payload->>'status' = 'ok' group by 1
"""


async def append(
    connection: Connection, fence: Fence, term: float, drafts: Sequence[StepDraft], spent: UsageDelta
) -> list[Step]:
    """Append as the owner of a claim with a lease of `term` seconds.

    Raises Fenced when it is no longer ours, AlreadyRecorded when a draft's key has a step.
    """
    parameters = {
        **_parameters(fence.run, drafts),
        **ours(fence),
        "term": f"{term} seconds",
        "keyed": any(d.key for d in drafts),
        "turns": spent.turns,
        "tokens": spent.tokens,
        "usd": spent.usd + spent.inherited,
        "seconds": spent.seconds,
    }
    try:
        rows = await (await connection.execute(APPEND, parameters)).fetchall()
    except UniqueViolation as error:
        raise AlreadyRecorded(str(fence.run), str(drafts[0].key)) from error
    if len(rows) != len(drafts):
        raise Fenced(str(fence.run), fence.number)
    return [place_step(d, seq, at, fence.number) for d, (seq, at) in zip(drafts, rows, strict=True)]


async def append_unowned(connection: Connection, run: UUID, drafts: Sequence[StepDraft]) -> list[Step]:
    """Append from outside a claim, in a transaction that has already checked that this is allowed."""
    rows = await (await connection.execute(APPEND_UNOWNED, _parameters(run, drafts))).fetchall()
    return [place_step(d, seq, at, 0) for d, (seq, at) in zip(drafts, rows, strict=True)]


async def after(connection: Connection, run: UUID, seq: int, limit: int) -> list[Step]:
    """Steps that follow `seq` (0: from the first), at most `limit`."""
    return [step_of(row) for row in await (await connection.execute(AFTER, (run, seq, limit))).fetchall()]


async def journal(connection: Connection, run: UUID, superstep: int) -> dict[CallKey, Step]:
    """What was recorded since the checkpoint of `superstep`: read back instead of being done again."""
    rows = await (await connection.execute(JOURNAL, (run, superstep))).fetchall()
    return {step.key: step for step in map(step_of, rows) if step.key is not None}


async def by_seq(connection: Connection, run: UUID, seqs: Sequence[int]) -> list[Step]:
    """Steps by their seqs, in the order asked for; one that does not exist is left out."""
    rows = await (await connection.execute(BY_SEQ, (run, list(seqs)))).fetchall()
    found = {step.seq: step for step in map(step_of, rows)}
    return [found[s] for s in seqs if s in found]


async def last_of_kind(connection: Connection, run: UUID, kind: StepKind, limit: int) -> list[Step]:
    """The last `limit` steps of a kind, oldest first."""
    return [step_of(row) for row in await (await connection.execute(LAST_OF_KIND, (run, kind, limit))).fetchall()]


async def last_upgrade(connection: Connection, run: UUID) -> int:
    """The step with which the run went over to the version of its graph that it has now. 0: it always had that."""
    row = await (await connection.execute(LAST_UPGRADE, (run,))).fetchone()
    return row[0] if row else 0


async def of_kinds(connection: Connection, run: UUID, kinds: Sequence[StepKind], seq: int, limit: int) -> list[Step]:
    """Steps of these kinds after `seq`, whole, oldest first."""
    rows = await (await connection.execute(OF_KINDS, (run, list(kinds), seq, limit))).fetchall()
    return [step_of(row) for row in rows]


async def tools_used(connection: Connection, run: UUID) -> dict[str, int]:
    """How often each tool was called, for limits on the number of calls."""
    return dict(await (await connection.execute(TOOLS_USED, (run,))).fetchall())


async def tools_answered(connection: Connection, run: UUID) -> dict[str, int]:
    """Bytes of JSON that each tool has answered, for limits on them."""
    return dict(await (await connection.execute(TOOLS_ANSWERED, (run,))).fetchall())


async def messages(connection: Connection, run: UUID, seq: int) -> list[Step]:
    """What people wrote to the run after step `seq`."""
    return [step_of(row) for row in await (await connection.execute(MESSAGES, (run, seq))).fetchall()]


def step_of(row: tuple[Any, ...]) -> Step:
    """A row of `COLUMNS` as a step."""
    seq, kind, title, payload, label, detail, ok, ms, tokens, turn, at, fence, superstep, path, ordinal, digest = row
    key = None if superstep is None else CallKey(superstep, path, ordinal, digest)
    return Step(seq, StepKind(kind), title, payload, label, detail, ok, ms, tokens, turn, at, fence, key)


def _parameters(run: UUID, drafts: Sequence[StepDraft]) -> dict[str, Any]:
    return {"run": run, "n": len(drafts), "drafts": Jsonb([_json(d) for d in drafts], dumps=orjson.dumps)}


def _json(draft: StepDraft) -> dict[str, Any]:
    key = draft.key
    return {
        "kind": draft.kind,
        "label": draft.label or draft.kind,
        "title": shortened(draft.title),
        "detail": shortened(draft.detail),
        "ok": draft.ok,
        "ms": draft.ms,
        "tokens": draft.tokens,
        "turn": draft.turn,
        "superstep": key.superstep if key else None,
        "path": key.path if key else None,
        "ordinal": key.ordinal if key else None,
        "digest": key.digest if key else "",
        "payload": draft.payload,
    }
