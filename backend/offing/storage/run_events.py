"""Notifications of runs as rows. Triggers write them in the transaction of the change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from offing.core.webhook import EventKind, RunEvent
from offing.storage.pagination import PageKey
from offing.storage.pool import Connection

_TITLE = "coalesce(nullif(r.title, ''), left(r.question, 200))"

LIST_EVENTS = f"""
    select e.id, e.kind, e.run_id, {_TITLE} as title, e.created_at, e.read_at, e.request_seq
      from run_event e join run r on r.tenant_id = e.tenant_id and r.id = e.run_id
     where e.kind <> 'run.cancelled'
       and (%(before_at)s::timestamptz is null or (e.created_at, e.id) < (%(before_at)s, %(before_id)s::uuid))
     order by e.created_at desc, e.id desc limit %(limit)s
"""

COUNT_UNREAD = "select count(*) from (select 1 from run_event where read_at is null limit %s) as unread"

MARK_READ = """
    update run_event set read_at = clock_timestamp()
     where read_at is null and created_at <= %(until)s::timestamptz and (%(id)s::uuid is null or id = %(id)s)
"""

GET_EVENT = f"""
    select e.id, e.kind, e.created_at, r.id, r.status, r.stop_reason, {_TITLE}
      from run_event e join run r on r.tenant_id = e.tenant_id and r.id = e.run_id where e.id = %s
"""


@dataclass(frozen=True, slots=True)
class RunEventRow:
    """A notification."""

    id: UUID
    kind: EventKind
    run_id: UUID
    title: str
    created_at: datetime
    read_at: datetime | None
    """`None` means unread."""
    request_seq: int | None
    """Number of the input request. `None` means that the run waits for nobody."""


async def list_events(connection: Connection, before: PageKey | None, limit: int) -> Sequence[RunEventRow]:
    """Return the tenant's notifications, newest first."""
    before_at, before_id = before or (None, None)
    values = {"before_at": before_at, "before_id": before_id, "limit": limit}
    async with connection.cursor(row_factory=class_row(RunEventRow)) as cursor:
        return await (await cursor.execute(LIST_EVENTS, values)).fetchall()


async def count_unread(connection: Connection, limit: int) -> int:
    """Return the number of unread notifications, at most `limit`."""
    row = await (await connection.execute(COUNT_UNREAD, (limit,))).fetchone()
    return row[0] if row else 0


async def mark_read(connection: Connection, until: datetime, event_id: UUID | None = None) -> None:
    """Mark a notification as read, or all up to a time if `event_id` is `None`."""
    await connection.execute(MARK_READ, {"until": until, "id": event_id})


async def find_event(connection: Connection, event_id: UUID) -> RunEvent | None:
    """Return an event with the present state of its run. `None` means that the run was deleted."""
    row: tuple[Any, ...] | None = await (await connection.execute(GET_EVENT, (event_id,))).fetchone()
    return RunEvent(*row) if row else None
