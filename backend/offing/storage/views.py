"""Runs, steps and threads as pages show them. Reads only; the protocol's own statements are in `storage.runs`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.run import RunStatus
from offing.core.step import Step, StepKind
from offing.storage import runs
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing.storage.steps import step_of

SHOWN = f"""
    {runs.COLUMNS}, lease_until,
    (select count(*) from question
      where question.run_id = run.id and answered_at is null and run.ended_at is null) as questions,
    (select body->>'title' from report where report.run_id = run.id order by version desc limit 1) as title
"""

BY_ID = f"select {SHOWN} from run where id = %s"

LIST = f"""
    select {SHOWN} from run
     where kind = %(kind)s
       and (%(status)s::text is null or status = %(status)s)
       and (%(graph)s::text is null or graph = %(graph)s)
       and (%(thread)s::uuid is null or thread_id = %(thread)s)
       and (%(text)s::text is null or strpos(lower(question), lower(%(text)s)) > 0)
       and (%(before_at)s::timestamptz is null or (created_at, id) < (%(before_at)s, %(before_id)s))
     order by created_at desc, id desc limit %(limit)s
"""

MARKS = """
    select coalesce(string_agg(
      case when not ok or kind = 'failure' then 'f'
           when kind in ('human', 'resumed', 'answer') then 'h'
           when kind = 'report' then 'w'
           when kind = 'verdict' or label = 'verify' then 'v'
           when kind = 'memory' or label = 'memory' then 'm'
           when label = 'search' then 's'
           when label = 'read' then 'r'
           when label = 'calculate' then 'c'
           when kind in ('plan', 'analysis') or label = 'plan' then 'p'
           else 'n' end, '' order by seq), '')
      from step where run_id = %s and seq > %s
"""
"""The horizon: one letter a step. The only home of the mapping; the letters are those of the wire's `marks`."""

STATUS = "select status from run where id = %s"

KNOWN = "select id from run where id = any(%s)"

LINES = """
    select seq, kind, title, '{}'::jsonb, label, detail, ok, ms, tokens, turn, at, fence, null, null, null, ''
      from step where run_id = %(run)s and seq > %(after)s and (%(kind)s::text is null or kind = %(kind)s)
     order by seq limit %(limit)s
"""
"""Steps without what only their payload holds."""

THREADS = """
    select id, title, created_at from thread
     where kind = 'ask' and (%(before_at)s::timestamptz is null or (created_at, id) < (%(before_at)s, %(before_id)s))
     order by created_at desc, id desc limit %(limit)s
"""
"""A rollout's thread holds it alone, and is not listed."""

THREAD = "select id, title, created_at from thread where id = %s"

RUNS_OF = f"select {SHOWN} from run where thread_id = any(%s) order by created_at, id"

COLLECTIONS = "select collection, count(*) from source where gone_at is null group by 1 order by 1"

TENANT = """
    select name, training_opt_in, daily_spend_usd,
           coalesce((select used from spend where tenant_id = tenant.id and day = current_date), 0)
      from tenant where id = %s
"""

CHANGE_OPT_IN = "update tenant set training_opt_in = %s where id = %s"

CHANGE_CAP = "update tenant set daily_spend_usd = %s where id = %s"

Place = tuple[datetime, UUID]
"""Where a page ended: time and id of its last record."""


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run with what a list shows besides."""

    run: RunRow
    title: str | None
    """Of its latest report."""
    lease_until: datetime | None
    questions: int = 0
    """That wait for a person."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows. None: any."""

    status: RunStatus | None = None
    graph: str | None = None
    thread: UUID | None = None
    text: str | None = None
    """Part of the question, in any case."""
    kind: str = "ask"
    """ask or rollout."""


@dataclass(frozen=True, slots=True)
class ThreadRow:
    id: UUID
    title: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TenantRow:
    name: str
    training_opt_in: bool
    daily_spend_usd: Decimal | None
    """None: no cap."""
    spent_today_usd: Decimal


async def run(connection: Connection, id: UUID) -> ShownRun:
    """Raises NotFound."""
    row = await (await connection.execute(BY_ID, (id,))).fetchone()
    if row is None:
        raise NotFound("run", str(id))
    return _shown(row)


async def list_runs(connection: Connection, wanted: RunFilter, before: Place | None, limit: int) -> list[ShownRun]:
    """Runs that follow `before`, newest first."""
    at, id = before or (None, None)
    values = {
        "status": wanted.status,
        "graph": wanted.graph,
        "thread": wanted.thread,
        "text": wanted.text,
        "kind": wanted.kind,
        "before_at": at,
        "before_id": id,
        "limit": limit,
    }
    return [_shown(row) for row in await (await connection.execute(LIST, values)).fetchall()]


async def status(connection: Connection, run: UUID) -> RunStatus:
    """Raises NotFound."""
    row = await (await connection.execute(STATUS, (run,))).fetchone()
    if row is None:
        raise NotFound("run", str(run))
    return RunStatus(row[0])


async def check_runs(connection: Connection, wanted: Sequence[UUID]) -> None:
    """Raises NotFound for the first run that is not there."""
    known = {id for (id,) in await (await connection.execute(KNOWN, (list(wanted),))).fetchall()}
    for run in wanted:
        if run not in known:
            raise NotFound("run", str(run))


async def marks(connection: Connection, run: UUID, after: int = 0) -> str:
    """One letter for each step after seq `after`."""
    row = await (await connection.execute(MARKS, (run, after))).fetchone()
    return row[0] if row else ""


async def lines(connection: Connection, run: UUID, after: int, limit: int, kind: StepKind | None = None) -> list[Step]:
    """Steps that follow `after`, in order, their payloads left out. `kind` None: any."""
    values = {"run": run, "after": after, "limit": limit, "kind": kind}
    return [step_of(row) for row in await (await connection.execute(LINES, values)).fetchall()]


async def threads(connection: Connection, before: Place | None, limit: int) -> list[ThreadRow]:
    """Threads that follow `before`, newest first."""
    at, id = before or (None, None)
    cursor = await connection.execute(THREADS, {"before_at": at, "before_id": id, "limit": limit})
    return [ThreadRow(*row) for row in await cursor.fetchall()]


async def thread(connection: Connection, id: UUID) -> ThreadRow:
    """Raises NotFound."""
    row = await (await connection.execute(THREAD, (id,))).fetchone()
    if row is None:
        raise NotFound("thread", str(id))
    return ThreadRow(*row)


async def runs_of(connection: Connection, threads: Sequence[UUID]) -> dict[UUID, list[ShownRun]]:
    """The runs of each thread, oldest first."""
    found: dict[UUID, list[ShownRun]] = {id: [] for id in threads}
    for row in await (await connection.execute(RUNS_OF, (list(threads),))).fetchall():
        shown = _shown(row)
        found[shown.run.thread].append(shown)
    return found


async def collections(connection: Connection) -> list[tuple[str, int]]:
    """Names with the number of sources that are there."""
    return [(name, count) for name, count in await (await connection.execute(COLLECTIONS)).fetchall()]


async def tenant(connection: Connection, id: UUID) -> TenantRow:
    row = await (await connection.execute(TENANT, (id,))).fetchone()
    assert row is not None, "the transaction's tenant exists"
    return TenantRow(*row)


async def change_opt_in(connection: Connection, tenant: UUID, opt_in: bool) -> None:
    await connection.execute(CHANGE_OPT_IN, (opt_in, tenant))


async def change_cap(connection: Connection, tenant: UUID, usd: Decimal | None) -> None:
    """None: no cap."""
    await connection.execute(CHANGE_CAP, (usd, tenant))


def _shown(row: Sequence[Any]) -> ShownRun:
    *columns, lease_until, questions, title = row
    return ShownRun(runs.run_of(columns), title, lease_until, questions)
