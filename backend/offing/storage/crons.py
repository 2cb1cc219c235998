"""Crons of LangGraph's clients as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.langgraph_run import Multitask, RunArguments
from offing.storage.pool import Connection, Database

COLUMNS = """
    id, assistant_id, thread_id, schedule, timezone, end_time, enabled, next_run_at, deletes_thread, multitask,
    arguments, webhook, metadata, owner, created_at, updated_at
"""

INSERT = """
    insert into cron (id, tenant_id, assistant_id, thread_id, schedule, timezone, end_time, enabled, next_run_at,
                      deletes_thread, multitask, arguments, webhook, metadata, owner)
    values (%(id)s, %(tenant)s, %(assistant)s, %(thread)s, %(schedule)s, %(timezone)s, %(end_time)s, %(enabled)s,
            %(next_run_at)s, %(deletes_thread)s, %(multitask)s, %(arguments)s, %(webhook)s, %(metadata)s, %(owner)s)
"""

UPDATE = """
    update cron set schedule = %(schedule)s, timezone = %(timezone)s, end_time = %(end_time)s, enabled = %(enabled)s,
                    next_run_at = %(next_run_at)s, deletes_thread = %(deletes_thread)s, multitask = %(multitask)s,
                    arguments = %(arguments)s, webhook = %(webhook)s, metadata = %(metadata)s,
                    updated_at = clock_timestamp()
     where id = %(id)s
"""

SET_NEXT_TIME = "update cron set next_run_at = %s where id = %s"

GET = f"select {COLUMNS} from cron where id = %s"

LOCK = f"{GET} for update"

LOCK_DUE = f"""
    select {COLUMNS} from cron where id = %s and enabled and next_run_at <= %s for update skip locked
"""
"""No row means that another process begins the run, or has begun it."""

MATCHING = """
    from cron
   where (%(assistant)s::uuid is null or assistant_id = %(assistant)s)
     and (%(thread)s::uuid is null or thread_id = %(thread)s)
     and (%(enabled)s::boolean is null or enabled = %(enabled)s)
     and metadata @> %(metadata)s and metadata @> %(allowed)s
"""

ORDERS: dict[str, LiteralString] = {
    "cron_id": "id",
    "assistant_id": "assistant_id",
    "thread_id": "thread_id",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "next_run_date": "next_run_at",
    "end_time": "end_time",
}

DELETE = "delete from cron where id = %s"

DELETE_OF_ASSISTANT = "delete from cron where assistant_id = %s"

LIST_DUE = "select tenant_id, id from app.list_due_crons(%s, %s)"


@dataclass(frozen=True, slots=True)
class CronRow:
    """A schedule by which runs of an assistant begin."""

    id: UUID
    assistant_id: UUID
    thread_id: UUID | None
    """`None` means a new thread for each run."""
    schedule: str
    timezone: str | None
    """`None` means UTC."""
    end_time: datetime | None
    """No run begins afterwards. `None` means no end."""
    enabled: bool
    next_run_at: datetime | None
    """`None` means that no time is left."""
    deletes_thread: bool
    """Whether the thread of a run is gone for LangGraph's clients when the run has ended."""
    multitask: Multitask
    arguments: RunArguments
    """Without those of the assistant, which are added when a run begins."""
    webhook: str | None
    metadata: Mapping[str, Any]
    owner: str
    """Who created it, as in `key:<id>`."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class CronFilter:
    """Which crons are listed. `None` means any."""

    assistant_id: UUID | None = None
    thread_id: UUID | None = None
    enabled: bool | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    allowed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Metadata that each cron must contain for the caller to see it."""


async def insert_cron(connection: Connection, tenant_id: UUID, row: CronRow) -> None:
    await connection.execute(INSERT, {**_values(row), "tenant": tenant_id})


async def update_cron(connection: Connection, row: CronRow) -> None:
    """Replace everything but assistant, thread and owner."""
    await connection.execute(UPDATE, _values(row))


async def set_next_time(connection: Connection, cron_id: UUID, at: datetime | None) -> None:
    await connection.execute(SET_NEXT_TIME, (at, cron_id))


async def get_cron(connection: Connection, cron_id: UUID, *, locks: bool = False) -> CronRow:
    """Return a cron. Raises `NotFound`."""
    row = await (await connection.execute(LOCK if locks else GET, (cron_id,))).fetchone()
    if row is None:
        raise NotFound("cron", str(cron_id))
    return _cron_from_row(row)


async def lock_due_cron(connection: Connection, cron_id: UUID, now: datetime) -> CronRow | None:
    """Lock a cron whose time has come. `None` means that it is not due, or that another process has it."""
    row = await (await connection.execute(LOCK_DUE, (cron_id, now))).fetchone()
    return None if row is None else _cron_from_row(row)


async def list_crons(
    connection: Connection, chosen: CronFilter, order: str, *, descending: bool, limit: int, offset: int
) -> list[CronRow]:
    """Return a page of crons. `order` is a key of `ORDERS`."""
    direction = "desc nulls last" if descending else "asc nulls last"
    query = f"select {COLUMNS} {MATCHING} order by {ORDERS[order]} {direction}, id limit %(limit)s offset %(offset)s"
    values = {**_parameters(chosen), "limit": limit, "offset": offset}
    return [_cron_from_row(row) for row in await (await connection.execute(query.encode(), values)).fetchall()]


async def count_crons(connection: Connection, chosen: CronFilter) -> int:
    row = await (await connection.execute(f"select count(*) {MATCHING}", _parameters(chosen))).fetchone()
    return row[0] if row else 0


async def delete_cron(connection: Connection, cron_id: UUID) -> None:
    """Delete a cron. Its runs stay. Raises `NotFound`."""
    if (await connection.execute(DELETE, (cron_id,))).rowcount == 0:
        raise NotFound("cron", str(cron_id))


async def delete_crons_of_assistant(connection: Connection, assistant_id: UUID) -> None:
    await connection.execute(DELETE_OF_ASSISTANT, (assistant_id,))


async def list_due_crons(database: Database, now: datetime, limit: int) -> list[tuple[UUID, UUID]]:
    """Return tenants and ids of crons whose time has come."""
    return [(tenant, id) for tenant, id in await database.call_function(LIST_DUE, (now, limit))]


def _values(row: CronRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "assistant": row.assistant_id,
        "thread": row.thread_id,
        "schedule": row.schedule,
        "timezone": row.timezone,
        "end_time": row.end_time,
        "enabled": row.enabled,
        "next_run_at": row.next_run_at,
        "deletes_thread": row.deletes_thread,
        "multitask": row.multitask,
        "arguments": _jsonb(row.arguments.to_json()),
        "webhook": row.webhook,
        "metadata": _jsonb(row.metadata),
        "owner": row.owner,
    }


def _parameters(chosen: CronFilter) -> dict[str, Any]:
    return {
        "assistant": chosen.assistant_id,
        "thread": chosen.thread_id,
        "enabled": chosen.enabled,
        "metadata": _jsonb(chosen.metadata),
        "allowed": _jsonb(chosen.allowed),
    }


def _cron_from_row(row: Sequence[Any]) -> CronRow:
    values: list[Any] = [*row]
    values[9], values[10] = Multitask(row[9]), RunArguments.from_json(row[10])
    return CronRow(*values)


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
