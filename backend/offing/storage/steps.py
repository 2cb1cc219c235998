"""The steps of a run as rows.

All appends are in this module; they check the fencing token and number the steps.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import orjson
from psycopg import AsyncCursor
from psycopg.errors import UniqueViolation
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from offing.core.errors import AlreadyRecordedError
from offing.core.run import FencingToken
from offing.core.step import CallKey, Step, StepDraft, StepKind, shorten_line, step_from_draft
from offing.core.usage import UsageDelta
from offing.storage.fencing_sql import ASSERT_OWNED, OWNS_RUN, fence_parameters, lease_errors
from offing.storage.pool import Connection

COLUMNS = "seq, kind, title, payload, label, detail, ok, ms, tokens, turn, at, fence, superstep, path, ordinal, digest"

INSERT_STEPS = """
    placed as (
      insert into step (run_id, seq, tenant_id, fence, kind, label, title, detail, ok, ms, tokens, turn,
                        superstep, path, ordinal, digest, node, payload)
      select guard.id, guard.base + d.nth - 1, guard.tenant_id, guard.fence,
             d.v->>'kind', d.v->>'label', d.v->>'title', d.v->>'detail', (d.v->>'ok')::boolean, (d.v->>'ms')::integer,
             (d.v->>'tokens')::integer, (d.v->>'turn')::integer,
             (d.v->>'superstep')::integer, d.v->>'path', (d.v->>'ordinal')::integer, d.v->>'digest',
             d.v->>'node', d.v->'payload'
        from guard, jsonb_array_elements(%(drafts)s) with ordinality as d(v, nth)
      returning seq, at)
"""
"""Inserts the rows in the given order, with the seqs that `guard` has reserved."""

APPEND_STEPS = f"""
    with guard as (
      update run
         set next_seq = next_seq + %(n)s,
             progress_seq = case when %(keyed)s then next_seq + %(n)s - 1 else progress_seq end,
             turns = greatest(turns, %(turns)s), tokens = tokens + %(tokens)s, cost_usd = cost_usd + %(usd)s,
             work_seconds = work_seconds + %(seconds)s, lease_until = clock_timestamp() + %(term)s::interval
       where {OWNS_RUN}
      returning id, tenant_id, fence, next_seq - %(n)s as base),
    {INSERT_STEPS}
    select seq, at from (select {ASSERT_OWNED}) as owned left join placed on true order by seq
"""
"""The append of a worker: one statement reserves the seqs, checks ownership, charges the usage and
renews the lease. The fencing token proves ownership; after its lease has expired, a claim can
still append until another worker claims the run.
"""

APPEND_EXTERNAL = f"""
    with guard as (
      update run set next_seq = next_seq + %(n)s where id = %(run)s
      returning id, tenant_id, 0::bigint as fence, next_seq - %(n)s as base),
    {INSERT_STEPS}
    select seq, at from placed order by seq
"""
"""An append from outside a claim: in a transaction of the API that has locked the run."""

INSERT_FIRST = f"""
    with guard as (select %(run)s::uuid as id, %(tenant)s::uuid as tenant_id, 0::bigint as fence, 1::bigint as base),
    {INSERT_STEPS}
    select from placed
"""
"""The first steps of a run, whose seqs the insert of the run has reserved."""

FIRST_SEQ = "coalesce((select next_seq - %(appended)s::bigint from run where id = %(run)s), 0)"
"""The seq of the first step that this transaction appended last, if `appended` is the number of these steps. 0 if it is
null. With it, a statement refers to steps before the response to the append has arrived.
"""

LIST_STEPS_AFTER = f"select {COLUMNS} from step where run_id = %s and seq > %s order by seq limit %s"

LOAD_JOURNAL = f"select {COLUMNS} from step where run_id = %s and superstep > %s order by seq"

LIST_STEPS_BY_SEQ = f"select {COLUMNS} from step where run_id = %s and seq = any(%s)"

LIST_LAST_STEPS = f"""
    select * from (select {COLUMNS} from step where run_id = %s and kind = %s order by seq desc limit %s) as latest
     order by seq
"""

GET_LAST_UPGRADE_SEQ = """
    select coalesce(max(seq), 0) from step where run_id = %s and kind = 'resumed' and payload->>'after' = 'upgrade'
"""

LIST_STEPS_OF_KINDS = (
    f"select {COLUMNS} from step where run_id = %s and kind = any(%s) and seq > %s order by seq limit %s"
)

LIST_USER_MESSAGES = f"select {COLUMNS} from step where run_id = %s and kind = 'user_message' and seq > %s order by seq"

EXECUTED_TOOL = """
    case when (payload->'own')::bool then 'graph:' else '' end
        || coalesce(payload->'substitute'->>'tool', payload->>'tool')
"""
"""The executed tool, by its name in tool policies."""

COUNT_TOOL_CALLS = f"""
    select {EXECUTED_TOOL}, count(*) from step
     where run_id = %s and kind = 'tool_result' and payload->>'rule' <> '' and payload->>'status' <> 'denied' group by 1
"""
"""Calls that the tool policy allowed, by executed tool."""

SUM_TOOL_RESULT_BYTES = f"""
    select {EXECUTED_TOOL},
           sum(octet_length((payload->'content')::text))::bigint
      from step where run_id = %s and kind = 'tool_result' and payload->>'status' = 'ok' group by 1
"""


class SentAppend:
    """An append that may be waiting in a pipeline."""

    def __init__(self, cursor: AsyncCursor[TupleRow], drafts: Sequence[StepDraft], fence: int) -> None:
        self._cursor, self._drafts, self._fence = cursor, drafts, fence
        self._steps: list[Step] | None = None

    @property
    def count(self) -> int:
        """Number of appended steps."""
        return len(self._drafts)

    async def read_seq(self, nth: int) -> int:
        """Return the seq of step `nth`, starting with 0. Waits like `read_steps`."""
        return (await self.read_steps())[nth].seq

    async def read_steps(self) -> list[Step]:
        """Return the appended steps. The first call waits for them if their transaction is still in progress."""
        if self._steps is None:
            rows = [(seq, at) for seq, at in await self._cursor.fetchall() if seq is not None]
            self._steps = [
                step_from_draft(d, seq, at, self._fence) for d, (seq, at) in zip(self._drafts, rows, strict=True)
            ]
        return self._steps


async def send_append(
    connection: Connection, fence: FencingToken, lease_seconds: float, drafts: Sequence[StepDraft], usage: UsageDelta
) -> SentAppend:
    """Append steps as the owner of a claim, and renew its lease by `lease_seconds`.

    In a pipelined transaction, this does not wait. The transaction then raises the errors of `append_errors`.
    """
    parameters = {
        **_append_parameters(fence.run_id, drafts),
        **fence_parameters(fence),
        "term": f"{lease_seconds} seconds",
        "keyed": any(d.call_key for d in drafts),
        "turns": usage.turns,
        "tokens": usage.tokens,
        "usd": usage.cost_usd + usage.child_cost_usd,
        "seconds": usage.seconds,
    }
    return SentAppend(await connection.execute(APPEND_STEPS, parameters), drafts, fence.number)


@contextmanager
def append_errors(fence: FencingToken, drafts: Sequence[StepDraft]) -> Generator[None]:
    """Raise `LeaseLostError` if the claim has been lost, and `AlreadyRecorded` if there is a step with the key of a
    draft.
    """
    try:
        with lease_errors():
            yield
    except UniqueViolation as error:
        if error.diag.table_name != "step":
            raise
        raise AlreadyRecordedError(str(fence.run_id), str(drafts[0].call_key)) from error


async def append_steps(
    connection: Connection, fence: FencingToken, lease_seconds: float, drafts: Sequence[StepDraft], usage: UsageDelta
) -> list[Step]:
    """Append steps like `send_append`, and wait for them. Raises the errors of `append_errors`."""
    with append_errors(fence, drafts):
        return await (await send_append(connection, fence, lease_seconds, drafts, usage)).read_steps()


async def append_external(connection: Connection, run_id: UUID, drafts: Sequence[StepDraft]) -> list[Step]:
    """Append steps from outside a claim.

    The transaction has already checked that this is allowed.
    """
    cursor = await connection.execute(APPEND_EXTERNAL, _append_parameters(run_id, drafts))
    return await SentAppend(cursor, drafts, 0).read_steps()


async def send_first(connection: Connection, tenant_id: UUID, run_id: UUID, drafts: Sequence[StepDraft]) -> None:
    """Store the first steps of a run that this transaction inserted with `first_steps`.

    In a pipelined transaction, this does not wait.
    """
    await connection.execute(INSERT_FIRST, {**_append_parameters(run_id, drafts), "tenant": tenant_id})


async def list_steps_after(connection: Connection, run_id: UUID, after_seq: int, limit: int) -> list[Step]:
    """Return at most `limit` steps after `after_seq`. 0 means from the first step."""
    return [
        step_from_row(row)
        for row in await (await connection.execute(LIST_STEPS_AFTER, (run_id, after_seq, limit))).fetchall()
    ]


async def load_journal(connection: Connection, run_id: UUID, superstep: int) -> dict[CallKey, Step]:
    """Load the call journal: the results recorded since a checkpoint.

    They are returned instead of repeating the calls. The checkpoint is that of `superstep`.
    """
    rows = await (await connection.execute(LOAD_JOURNAL, (run_id, superstep))).fetchall()
    return {step.call_key: step for step in map(step_from_row, rows) if step.call_key is not None}


async def list_steps_by_seq(connection: Connection, run_id: UUID, seqs: Sequence[int]) -> list[Step]:
    """Return steps by seq, in the given order. Steps that do not exist are left out."""
    rows = await (await connection.execute(LIST_STEPS_BY_SEQ, (run_id, list(seqs)))).fetchall()
    by_seq = {step.seq: step for step in map(step_from_row, rows)}
    return [by_seq[s] for s in seqs if s in by_seq]


async def list_last_steps(connection: Connection, run_id: UUID, kind: StepKind, limit: int) -> list[Step]:
    """Return the last `limit` steps of a kind, oldest first."""
    return [
        step_from_row(row)
        for row in await (await connection.execute(LIST_LAST_STEPS, (run_id, kind, limit))).fetchall()
    ]


async def get_last_upgrade_seq(connection: Connection, run_id: UUID) -> int:
    """Return the step in which the run was upgraded to its current graph version.

    0 means that it was never upgraded.
    """
    row = await (await connection.execute(GET_LAST_UPGRADE_SEQ, (run_id,))).fetchone()
    return row[0] if row else 0


async def list_steps_of_kinds(
    connection: Connection, run_id: UUID, kinds: Sequence[StepKind], after_seq: int, limit: int
) -> list[Step]:
    """Return complete steps of these kinds after `after_seq`, oldest first."""
    rows = await (await connection.execute(LIST_STEPS_OF_KINDS, (run_id, list(kinds), after_seq, limit))).fetchall()
    return [step_from_row(row) for row in rows]


async def count_tool_calls(connection: Connection, run_id: UUID) -> dict[str, int]:
    """Return the number of calls of each tool, for limits on calls."""
    return dict(await (await connection.execute(COUNT_TOOL_CALLS, (run_id,))).fetchall())


async def sum_tool_result_bytes(connection: Connection, run_id: UUID) -> dict[str, int]:
    """Return the size of each tool's results as JSON in bytes, for limits on results."""
    return dict(await (await connection.execute(SUM_TOOL_RESULT_BYTES, (run_id,))).fetchall())


async def list_user_messages(connection: Connection, run_id: UUID, after_seq: int) -> list[Step]:
    """Return the user messages of the run after step `after_seq`."""
    return [
        step_from_row(row)
        for row in await (await connection.execute(LIST_USER_MESSAGES, (run_id, after_seq))).fetchall()
    ]


def step_from_row(row: tuple[Any, ...]) -> Step:
    """Convert a row of `COLUMNS` to a step."""
    seq, kind, title, payload, label, detail, ok, ms, tokens, turn, at, fence, superstep, path, ordinal, digest = row
    key = None if superstep is None else CallKey(superstep, path, ordinal, digest)
    return Step(seq, StepKind(kind), title, payload, label, detail, ok, ms, tokens, turn, at, fence, key)


def _append_parameters(run_id: UUID, drafts: Sequence[StepDraft]) -> dict[str, Any]:
    return {"run": run_id, "n": len(drafts), "drafts": Jsonb([_draft_to_json(d) for d in drafts], dumps=orjson.dumps)}


def _draft_to_json(draft: StepDraft) -> dict[str, Any]:
    key = draft.call_key
    return {
        "kind": draft.kind,
        "label": draft.label or draft.kind,
        "title": shorten_line(draft.title),
        "detail": shorten_line(draft.detail),
        "ok": draft.ok,
        "ms": draft.ms,
        "tokens": draft.tokens,
        "turn": draft.turn,
        "superstep": key.superstep if key else None,
        "path": key.path if key else None,
        "ordinal": key.ordinal if key else None,
        "digest": key.digest if key else "",
        **({"node": key.node} if key and key.node else {}),
        "payload": draft.payload,
    }
