"""Which run started which, as rows, and what a parent needs to know of its children.

The only home of the table `child_run`. Knows neither budgets nor policies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from offing.core.errors import Fenced
from offing.core.run import Fence, RunStatus, StopReason
from offing.core.step import CallKey
from offing.storage import runs, steps
from offing.storage.fencing import OURS, ours
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow

HOLD = f"select 1 from run where {OURS} for update"

INSERT_THREAD = "insert into thread (id, tenant_id, title, kind) values (%s, %s, %s, 'child')"

INSERT = """
    insert into child_run (run_id, tenant_id, parent_id, superstep, path, ordinal, digest, depth)
    values (%s, %s, %s, %s, %s, %s, %s, %s)
"""

_CHILD = ", ".join(f"r.{name.strip()}" for name in runs.COLUMNS.split(","))

OF_CALL = f"""
    select c.ordinal, c.digest, {_CHILD} from child_run c join run r on r.id = c.run_id
     where c.parent_id = %s and c.superstep = %s and c.path = %s
"""

UNCONSUMED_KEYS = """
    select c.superstep, c.path, c.ordinal, c.digest, r.question from child_run c join run r on r.id = c.run_id
     where c.parent_id = %s and c.superstep > %s and c.collected_at is null
"""

UNCOLLECTED = f"""
    select {_CHILD} from child_run c join run r on r.id = c.run_id
     where c.parent_id = %s and c.collected_at is null order by r.created_at, r.id
"""

COUNT = "select count(*) from child_run where parent_id = %s"

DEPTH = "select depth from child_run where run_id = %s"

PARENT = "select parent_id from child_run where run_id = %s"

OPEN = """
    select c.run_id from child_run c join run r on r.id = c.run_id where c.parent_id = %s and r.ended_at is null
"""

COLLECTED = "update child_run set collected_at = clock_timestamp() where run_id = %s and parent_id = %s"

TOOLS = """
    select u.tool, sum(u.n::bigint)::bigint from step s, jsonb_each_text(s.payload->%(what)s) as u(tool, n)
     where s.run_id = %(run)s and s.kind = 'tool' and s.payload->>'tool' = 'child_run' group by 1
"""

FAMILY = """
    select r.id, r.question, r.graph, r.status, r.stop_reason, r.waiting_for, r.turns, r.created_at, r.ended_at
      from child_run c join run r on r.id = c.run_id where c.parent_id = %s
     order by c.superstep, c.path, c.ordinal, r.created_at, r.seed, r.id
"""

FORSAKEN = "select run, tenant from app.sweep_child_runs(%s)"


@dataclass(frozen=True, slots=True)
class ChildRow:
    """A child as its parent's page lists it."""

    id: UUID
    question: str
    graph: str
    status: RunStatus
    stop_reason: StopReason | None
    waiting_for: str | None
    turns: int
    created_at: datetime
    ended_at: datetime | None


async def hold(connection: Connection, fence: Fence) -> None:
    """Lock the parent's row for this transaction. Raises Fenced when it is no longer ours."""
    if await (await connection.execute(HOLD, ours(fence))).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)


async def insert(connection: Connection, tenant: UUID, parent: UUID, key: CallKey, depth: int, child: UUID) -> None:
    place = (key.superstep, key.path, key.ordinal, key.digest)
    await connection.execute(INSERT, (child, tenant, parent, *place, depth))


async def insert_thread(connection: Connection, tenant: UUID, thread: UUID, title: str) -> None:
    await connection.execute(INSERT_THREAD, (thread, tenant, title))


async def of_call(connection: Connection, parent: UUID, keys: Sequence[CallKey]) -> dict[CallKey, RunRow]:
    """Children that were made under these keys, which are of one node. Absent: not made."""
    first = keys[0]
    rows = await (await connection.execute(OF_CALL, (parent, first.superstep, first.path))).fetchall()
    made = {CallKey(first.superstep, first.path, nth, digest): runs.run_of(row) for nth, digest, *row in rows}
    return {key: made[key] for key in keys if key in made}


async def unconsumed_since(connection: Connection, parent: UUID, superstep: int) -> list[tuple[CallKey, str]]:
    """Return the child runs that were created after the checkpoint of `superstep`: the call key and the question."""
    rows = await (await connection.execute(UNCONSUMED_KEYS, (parent, superstep))).fetchall()
    return [(CallKey(at, path, nth, digest), question) for at, path, nth, digest, question in rows]


async def uncollected(connection: Connection, parent: UUID) -> list[RunRow]:
    """Children whose results, and whose costs, the parent has not taken up."""
    return [runs.run_of(row) for row in await (await connection.execute(UNCOLLECTED, (parent,))).fetchall()]


async def count(connection: Connection, parent: UUID) -> int:
    row = await (await connection.execute(COUNT, (parent,))).fetchone()
    return row[0] if row else 0


async def depth(connection: Connection, run: UUID) -> int:
    """How many runs stand above this one. 0: it is nobody's child."""
    row = await (await connection.execute(DEPTH, (run,))).fetchone()
    return row[0] if row else 0


async def parent_of(connection: Connection, run: UUID) -> UUID | None:
    """Who started a run. None: a person, or a collection."""
    row = await (await connection.execute(PARENT, (run,))).fetchone()
    return row[0] if row else None


async def open_children(connection: Connection, parent: UUID) -> list[UUID]:
    """Children that have not ended."""
    return [run for (run,) in await (await connection.execute(OPEN, (parent,))).fetchall()]


async def collect(connection: Connection, parent: UUID, child: UUID) -> None:
    """The parent has recorded what this child brought."""
    await connection.execute(COLLECTED, (child, parent))


async def tools(connection: Connection, run: UUID, what: Literal["used", "received"]) -> dict[str, int]:
    """Calls of each tool, or bytes that it answered, by a run and all collected children under it; tools in order."""
    own = await (steps.tools_used if what == "used" else steps.tools_answered)(connection, run)
    theirs = dict(await (await connection.execute(TOOLS, {"run": run, "what": what})).fetchall())
    return {tool: own.get(tool, 0) + theirs.get(tool, 0) for tool in sorted({*own, *theirs})}


async def family(connection: Connection, parent: UUID) -> list[ChildRow]:
    """The children of a run in the order in which they were asked for."""
    rows = await (await connection.execute(FAMILY, (parent,))).fetchall()
    return [_listed(row) for row in rows]


async def forsaken(database: Database, most: int) -> list[tuple[UUID, UUID]]:
    """Children whose parent has ended without telling them, each with its tenant."""
    return [(run, tenant) for run, tenant in await database.platform(FORSAKEN, (most,))]


def _listed(row: Sequence[Any]) -> ChildRow:
    id_, question, graph, status, stop, *rest = row
    return ChildRow(id_, question, graph, RunStatus(status), StopReason(stop) if stop else None, *rest)
