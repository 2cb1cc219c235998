"""Runs and threads of LangGraph's clients as rows: what they ask for beyond a question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

import orjson
from psycopg import AsyncCursor
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.langgraph_run import Multitask, RunArguments
from offing.core.run import RunStatus, StopReason
from offing.storage.pool import Connection
from offing.storage.runs import RunRow

Read = TypeVar("Read")

INSERT_REQUEST = """
    insert into langgraph_run (run_id, tenant_id, assistant_id, metadata, multitask, arguments, deletes_thread,
                               webhook)
    values (%(run)s, %(tenant)s, %(assistant)s, %(metadata)s, %(multitask)s, %(arguments)s, %(deletes_thread)s,
            %(webhook)s)
"""

FIND_ARGUMENTS = "select arguments, assistant_id from langgraph_run where run_id = %s"

RUN_COLUMNS = """
    run.id, run.thread_id, request.assistant_id, run.graph, run.created_at,
    coalesce(run.ended_at, run.started_at, run.created_at), run.status, run.stop_reason, run.error, run.enqueued,
    request.metadata, request.multitask, request.arguments, run.fence
"""

GET_RUN = f"""
    select {RUN_COLUMNS} from run join langgraph_run as request on request.run_id = run.id where run.id = %s
"""

LIST_RUNS = f"""
    select {RUN_COLUMNS} from run join langgraph_run as request on request.run_id = run.id
     where run.thread_id = %(thread)s
     order by run.created_at desc, run.id desc
     limit %(limit)s offset %(offset)s
"""

LIST_ACTIVE_BY_METADATA = f"""
    select {RUN_COLUMNS} from run join langgraph_run as request on request.run_id = run.id
     where run.status in ('queued', 'running', 'waiting', 'paused') and request.metadata @> %s
     order by run.created_at, run.id
"""

LIST_FOLLOWED = f"""
    select {RUN_COLUMNS} from run join langgraph_run as request on request.run_id = run.id
     where run.thread_id = %(thread)s and (run.ended_at is null or run.id = (
             select last.id from run as last join langgraph_run as its on its.run_id = last.id
              where last.thread_id = %(thread)s order by last.created_at desc, last.id desc limit 1))
     order by run.created_at, run.id
"""

ENQUEUE = """
    update run set enqueued = true, status = 'waiting', waiting_for = 'the earlier runs of its thread',
                   not_before = clock_timestamp() + %(delay)s::interval
     where id = %(run)s
"""

FIND_NEXT = """
    select coalesce(bool_or(status = 'queued'), false), coalesce(bool_or(enqueued), false) from run
     where thread_id = %(thread)s and status in ('queued', 'waiting')
"""

QUEUE_NEXT = "select app.queue_next_run(%s)"

DELAY = """
    update run set status = 'waiting', waiting_for = 'its start time',
                   not_before = clock_timestamp() + %(delay)s::interval
     where id = %(run)s
"""

CLAIM_STATE_RUN = "select fence from app.claim_run(%s, 'api', interval '1 minute')"

LOCK_THREAD = """
    select id from thread where id = %(thread)s
       and not exists (select from langgraph_thread where thread_id = %(thread)s and gone_at is not null)
       for no key update
"""
"""A stronger lock would make foreign keys wait: a worker that ends a run has locked other rows of the thread before it
stores the last states, and both would wait for each other.
"""

LIST_ACTIVE = """
    select id from run
     where thread_id = %s and status in ('queued', 'running', 'waiting', 'paused')
     order by created_at, id
"""

FIND_FIRST_RUN = "select id from run where thread_id = %s order by created_at, id limit 1"

HAS_EARLIER_RUN = """
    select exists (select from run earlier where earlier.thread_id = run.thread_id
                                             and (earlier.created_at, earlier.id) < (run.created_at, run.id))
      from run where id = %s
"""

FIND_FIRST_CHECKPOINT = """
    select c.checkpoint_id, c.parent_id from run join checkpoint c on c.thread_id = run.thread_id and c.run_id = run.id
     where run.id = %s and c.ns = '' order by c.nth limit 1
"""

FIND_LAST_RUN = "select id from run where thread_id = %s order by created_at desc, id desc limit 1"


@dataclass(frozen=True, slots=True)
class FirstCheckpoint:
    """The first stored checkpoint of a run."""

    id: str
    parent_id: str | None
    """The checkpoint with which the run began. `None` means that its thread had none."""


@dataclass(frozen=True, slots=True)
class LangGraphRunRow:
    """A run as LangGraph's clients see it."""

    id: UUID
    thread_id: UUID
    assistant_id: UUID
    graph: str
    created_at: datetime
    updated_at: datetime
    status: RunStatus
    stop_reason: StopReason | None
    error: str | None
    is_enqueued: bool
    metadata: dict[str, Any]
    multitask: Multitask
    arguments: RunArguments
    claims: int
    """How many times workers have claimed the run."""


@dataclass(frozen=True, slots=True)
class NewRequest:
    """What is stored of a request beside the run."""

    assistant_id: UUID
    arguments: RunArguments
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    multitask: Multitask = Multitask.ENQUEUE
    deletes_thread: bool = False
    webhook: str | None = None
    """Address that is told of the end of the run. `None` means none."""


async def insert_request(connection: Connection, tenant_id: UUID, run_id: UUID, new: NewRequest) -> None:
    values = {
        "run": run_id,
        "tenant": tenant_id,
        "assistant": new.assistant_id,
        "metadata": _jsonb(new.metadata),
        "multitask": new.multitask,
        "arguments": _jsonb(new.arguments.to_json()),
        "deletes_thread": new.deletes_thread,
        "webhook": new.webhook,
    }
    await connection.execute(INSERT_REQUEST, values)


@dataclass(frozen=True, slots=True)
class StoredArguments:
    """How a run's graph is invoked, for whom."""

    arguments: RunArguments
    assistant_id: UUID


async def find_arguments(connection: Connection, run_id: UUID) -> StoredArguments:
    """Return how the graph of a run is invoked. Raises `NotFound`."""
    return await (await send_find_arguments(connection, run_id)).read()


async def send_find_arguments(connection: Connection, run_id: UUID) -> "SentRead[StoredArguments]":
    """Find out how the graph of a run is invoked. In a pipelined transaction, this does not wait."""
    return SentRead(await connection.execute(FIND_ARGUMENTS, (run_id,)), run_id, _arguments_from_row)


async def get_run(connection: Connection, run_id: UUID) -> LangGraphRunRow:
    """Return a run that a client of LangGraph's API made. Raises `NotFound`."""
    return await (await send_get_run(connection, run_id)).read()


async def send_get_run(connection: Connection, run_id: UUID) -> "SentRead[LangGraphRunRow]":
    """Get a run. In a pipelined transaction, this does not wait."""
    return SentRead(await connection.execute(GET_RUN, (run_id,)), run_id, _run_from_row)


@dataclass(frozen=True, slots=True)
class SentRead(Generic[Read]):
    """A read about one run that may be waiting in a pipeline."""

    cursor: AsyncCursor[TupleRow]
    run_id: UUID
    from_row: Callable[[TupleRow], Read]

    async def read(self) -> Read:
        """Return the result. Waits for it if its transaction is still in progress. Raises `NotFound`."""
        row = await self.cursor.fetchone()
        if row is None:
            raise NotFound("run", str(self.run_id))
        return self.from_row(row)


def _arguments_from_row(row: TupleRow) -> StoredArguments:
    return StoredArguments(RunArguments.from_json(row[0]), row[1])


def build_new_run(row: RunRow, new: NewRequest) -> LangGraphRunRow:
    """Return a run that was just stored for a request and that waits for nothing, as `get_run` does."""
    return LangGraphRunRow(
        row.id,
        row.thread_id,
        new.assistant_id,
        row.graph,
        row.created_at,
        row.created_at,
        row.status,
        row.stop_reason,
        row.error,
        False,
        dict(new.metadata),
        new.multitask,
        new.arguments,
        claims=0,
    )


async def list_runs(
    connection: Connection, thread_id: UUID, *, limit: int | None = None, offset: int = 0
) -> list[LangGraphRunRow]:
    """Return the runs of a thread, newest first. `limit` `None` means all after the first `offset`."""
    values = {"thread": thread_id, "limit": limit, "offset": offset}
    rows = await (await connection.execute(LIST_RUNS, values)).fetchall()
    return [_run_from_row(row) for row in rows]


async def list_active_by_metadata(connection: Connection, metadata: Mapping[str, Any]) -> list[LangGraphRunRow]:
    """Return the active runs of the tenant whose metadata contain these, oldest first."""
    rows = await (await connection.execute(LIST_ACTIVE_BY_METADATA, (_jsonb(metadata),))).fetchall()
    return [_run_from_row(row) for row in rows]


async def list_followed(connection: Connection, thread_id: UUID) -> list[LangGraphRunRow]:
    """Return the runs of a thread that have not ended, and its last run, oldest first."""
    rows = await (await connection.execute(LIST_FOLLOWED, {"thread": thread_id})).fetchall()
    return [_run_from_row(row) for row in rows]


async def lock_thread(connection: Connection, thread_id: UUID) -> None:
    """Lock a thread against other requests for runs. Raises `NotFound`."""
    if await (await connection.execute(LOCK_THREAD, {"thread": thread_id})).fetchone() is None:
        raise NotFound("thread", str(thread_id))


async def list_active_ids(connection: Connection, thread_id: UUID) -> list[UUID]:
    """Return the runs of a thread that have not ended, oldest first."""
    return [id for (id,) in await (await connection.execute(LIST_ACTIVE, (thread_id,))).fetchall()]


async def enqueue_run(connection: Connection, run_id: UUID, delay_seconds: float) -> None:
    """Let a new run wait for the earlier runs of its thread, and at least this long."""
    delay = f"{delay_seconds} seconds" if delay_seconds else None
    await connection.execute(ENQUEUE, {"run": run_id, "delay": delay})


async def send_look_for_next_run(connection: Connection, thread_id: UUID) -> "SentLook":
    """Look for a run of a thread that can follow one that has ended. In a pipelined transaction, this does not wait."""
    return SentLook(await connection.execute(FIND_NEXT, {"thread": thread_id}))


@dataclass(frozen=True, slots=True)
class NextRuns:
    """What follows a run that has ended in its thread."""

    is_queued: bool
    """Whether a run is queued, for example because the end queued it."""
    is_enqueued: bool
    """Whether a run waits for the earlier ones."""


@dataclass(frozen=True, slots=True)
class SentLook:
    """A look for the next run that may be waiting in a pipeline."""

    cursor: AsyncCursor[TupleRow]

    async def read(self) -> NextRuns:
        """Return what was found. Waits for it if its transaction is still in progress."""
        row = await self.cursor.fetchone()
        assert row is not None, "an aggregate has a row"
        return NextRuns(*row)


async def queue_next_run(connection: Connection, thread_id: UUID) -> UUID | None:
    """Queue the next enqueued run of a thread that has no active run, and return it. `None` means none.

    It locks the thread, so that it needs a transaction of its own.
    """
    row = await (await connection.execute(QUEUE_NEXT, (thread_id,))).fetchone()
    return row[0] if row else None


async def delay_run(connection: Connection, run_id: UUID, delay_seconds: float) -> None:
    """Let a new run start later."""
    await connection.execute(DELAY, {"run": run_id, "delay": f"{delay_seconds} seconds"})


async def claim_state_run(connection: Connection, run_id: UUID) -> int:
    """Claim the run that stands for a state in the transaction that stored it, and return the number of its claim."""
    row = await (await connection.execute(CLAIM_STATE_RUN, (run_id,))).fetchone()
    assert row is not None, "nobody else can have claimed it"
    return row[0]


async def find_first_run(connection: Connection, thread_id: UUID) -> UUID | None:
    """Return the first run of a thread, of any kind. `None` means that it has none."""
    row = await (await connection.execute(FIND_FIRST_RUN, (thread_id,))).fetchone()
    return row[0] if row else None


async def find_last_run(connection: Connection, thread_id: UUID) -> UUID | None:
    """Return the last run of a thread, of any kind. `None` means that it has none."""
    row = await (await connection.execute(FIND_LAST_RUN, (thread_id,))).fetchone()
    return row[0] if row else None


async def has_earlier_run(connection: Connection, run_id: UUID) -> bool:
    """Return whether a run is not the first of its thread, counting runs of any kind."""
    row = await (await connection.execute(HAS_EARLIER_RUN, (run_id,))).fetchone()
    return bool(row and row[0])


async def find_first_checkpoint(connection: Connection, run_id: UUID) -> FirstCheckpoint | None:
    """Return the first checkpoint of a run that is still stored. `None` means that there is none."""
    row = await (await connection.execute(FIND_FIRST_CHECKPOINT, (run_id,))).fetchone()
    return None if row is None else FirstCheckpoint(*row)


def _run_from_row(row: Sequence[Any]) -> LangGraphRunRow:
    id, thread, assistant, graph, created, updated, status, stop, error, enqueued, *request, claims = row
    metadata, multitask, arguments = request
    return LangGraphRunRow(
        id,
        thread,
        assistant,
        graph,
        created,
        updated,
        RunStatus(status),
        StopReason(stop) if stop else None,
        error,
        enqueued,
        metadata,
        Multitask(multitask),
        RunArguments.from_json(arguments),
        claims,
    )


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
