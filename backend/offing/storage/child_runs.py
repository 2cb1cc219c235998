"""Child runs as rows: which run started which, and what a parent reads about its children."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken, RunStatus, StopReason
from offing.core.step import CallKey
from offing.storage import runs, steps
from offing.storage.fencing_sql import OWNS_RUN, fence_parameters
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow

LOCK_PARENT = f"select 1 from run where {OWNS_RUN} for update"

INSERT_THREAD = "insert into thread (id, tenant_id, title, kind) values (%s, %s, %s, 'child')"

INSERT_CHILD = """
    insert into child_run (run_id, tenant_id, parent_id, superstep, path, ordinal, digest, depth)
    values (%s, %s, %s, %s, %s, %s, %s, %s)
"""

_CHILD_COLUMNS = ", ".join(f"r.{name.strip()}" for name in runs.COLUMNS.split(","))

LIST_CHILDREN_OF_CALL = f"""
    select c.ordinal, c.digest, {_CHILD_COLUMNS} from child_run c join run r on r.id = c.run_id
     where c.parent_id = %s and c.superstep = %s and c.path = %s
"""

LIST_UNCONSUMED_SINCE = """
    select c.superstep, c.path, c.ordinal, c.digest, r.question from child_run c join run r on r.id = c.run_id
     where c.parent_id = %s and c.superstep > %s and c.consumed_at is null
"""

LIST_UNCONSUMED = f"""
    select {_CHILD_COLUMNS} from child_run c join run r on r.id = c.run_id
     where c.parent_id = %s and c.consumed_at is null order by r.created_at, r.id
"""

COUNT_CHILDREN = "select count(*) from child_run where parent_id = %s"

GET_DEPTH = "select depth from child_run where run_id = %s"

FIND_PARENT = "select parent_id from child_run where run_id = %s"

LIST_ACTIVE_CHILDREN = """
    select c.run_id from child_run c join run r on r.id = c.run_id where c.parent_id = %s and r.ended_at is null
"""

MARK_CONSUMED = "update child_run set consumed_at = clock_timestamp() where run_id = %s and parent_id = %s"

SUM_TOOL_USAGE = """
    select u.tool, sum(u.n::bigint)::bigint from step s, jsonb_each_text(s.payload->%(what)s) as u(tool, n)
     where s.run_id = %(run)s and s.kind = 'tool_result' and s.payload->>'tool' = 'child_run' group by 1
"""

LIST_CHILDREN = """
    select r.id, r.question, r.graph, r.status, r.stop_reason, r.waiting_for, r.turns, r.created_at, r.ended_at
      from child_run c join run r on r.id = c.run_id where c.parent_id = %s
     order by c.superstep, c.path, c.ordinal, r.created_at, r.seed, r.id
"""

LIST_ORPHANED = "select run_id, tenant_id from app.list_orphaned_runs(%s)"


@dataclass(frozen=True, slots=True)
class ChildRunRow:
    """A child run as its parent lists it."""

    id: UUID
    question: str
    graph: str
    status: RunStatus
    stop_reason: StopReason | None
    waiting_for: str | None
    turns: int
    created_at: datetime
    ended_at: datetime | None


async def lock_parent(connection: Connection, fence: FencingToken) -> None:
    """Lock the parent's row for this transaction.

    Raises `LeaseLostError` if the claim has been lost.
    """
    if await (await connection.execute(LOCK_PARENT, fence_parameters(fence))).fetchone() is None:
        raise LeaseLostError(str(fence.run_id), fence.number)


async def insert_child(
    connection: Connection, tenant_id: UUID, parent_id: UUID, key: CallKey, depth: int, child_id: UUID
) -> None:
    call_key = (key.superstep, key.path, key.ordinal, key.digest)
    await connection.execute(INSERT_CHILD, (child_id, tenant_id, parent_id, *call_key, depth))


async def insert_child_thread(connection: Connection, tenant_id: UUID, thread_id: UUID, title: str) -> None:
    await connection.execute(INSERT_THREAD, (thread_id, tenant_id, title))


async def list_children_of_call(
    connection: Connection, parent_id: UUID, keys: Sequence[CallKey]
) -> dict[CallKey, RunRow]:
    """Return the children that were created with these call keys, which must belong to one node.

    Keys without a child are left out.
    """
    first = keys[0]
    rows = await (await connection.execute(LIST_CHILDREN_OF_CALL, (parent_id, first.superstep, first.path))).fetchall()
    children = {CallKey(first.superstep, first.path, nth, digest): runs.run_from_row(row) for nth, digest, *row in rows}
    return {key: children[key] for key in keys if key in children}


async def list_unconsumed_since(connection: Connection, parent_id: UUID, superstep: int) -> list[tuple[CallKey, str]]:
    """Return the child runs that were created after a checkpoint.

    The checkpoint is that of `superstep`. Each child is returned as its call key and its
    question.
    """
    rows = await (await connection.execute(LIST_UNCONSUMED_SINCE, (parent_id, superstep))).fetchall()
    return [(CallKey(at, path, nth, digest), question) for at, path, nth, digest, question in rows]


async def list_unconsumed(connection: Connection, parent_id: UUID) -> list[RunRow]:
    """Return the children whose results and costs the parent has not consumed."""
    return [
        runs.run_from_row(row) for row in await (await connection.execute(LIST_UNCONSUMED, (parent_id,))).fetchall()
    ]


async def count_children(connection: Connection, parent_id: UUID) -> int:
    row = await (await connection.execute(COUNT_CHILDREN, (parent_id,))).fetchone()
    return row[0] if row else 0


async def get_depth(connection: Connection, run_id: UUID) -> int:
    """Return the number of ancestors of a run. 0 means that it is not a child run."""
    row = await (await connection.execute(GET_DEPTH, (run_id,))).fetchone()
    return row[0] if row else 0


async def find_parent_id(connection: Connection, run_id: UUID) -> UUID | None:
    """Return the id of the parent.

    `None` means that a person or a rollout batch started the run.
    """
    row = await (await connection.execute(FIND_PARENT, (run_id,))).fetchone()
    return row[0] if row else None


async def list_active_child_ids(connection: Connection, parent_id: UUID) -> list[UUID]:
    """Return the ids of the children that have not ended."""
    return [run for (run,) in await (await connection.execute(LIST_ACTIVE_CHILDREN, (parent_id,))).fetchall()]


async def mark_consumed(connection: Connection, parent_id: UUID, child_id: UUID) -> None:
    """Record that the parent has consumed the result of this child."""
    await connection.execute(MARK_CONSUMED, (child_id, parent_id))


async def sum_tool_usage(connection: Connection, run_id: UUID, measure: Literal["used", "received"]) -> dict[str, int]:
    """Return calls per tool, or bytes of results per tool.

    All consumed children below the run are included. Tools are sorted by name.
    """
    own = await (steps.count_tool_calls if measure == "used" else steps.sum_tool_result_bytes)(connection, run_id)
    theirs = dict(await (await connection.execute(SUM_TOOL_USAGE, {"run": run_id, "what": measure})).fetchall())
    return {tool: own.get(tool, 0) + theirs.get(tool, 0) for tool in sorted({*own, *theirs})}


async def list_children(connection: Connection, parent_id: UUID) -> list[ChildRunRow]:
    """Return the children of a run in the order in which they were requested."""
    rows = await (await connection.execute(LIST_CHILDREN, (parent_id,))).fetchall()
    return [_child_from_row(row) for row in rows]


async def list_orphaned(database: Database, limit: int) -> list[tuple[UUID, UUID]]:
    """Return orphaned children, whose parent ended without cancelling them, each with its tenant."""
    return [(run, tenant) for run, tenant in await database.call_function(LIST_ORPHANED, (limit,))]


def _child_from_row(row: Sequence[Any]) -> ChildRunRow:
    id_, question, graph, status, stop, *rest = row
    return ChildRunRow(id_, question, graph, RunStatus(status), StopReason(stop) if stop else None, *rest)
