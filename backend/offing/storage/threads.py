"""Threads as rows, and what a follow-up run inherits from the runs of its thread."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.report_style import ReportStyle
from offing.storage.pagination import PageKey
from offing.storage.pool import Connection
from offing.storage.runs import parse_report_style

LIST_THREADS = """
    select id, title, created_at from thread
     where kind = 'interactive' and (%(before_at)s::timestamptz is null or (created_at, id) < (%(before_at)s,
     %(before_id)s))
     order by created_at desc, id desc limit %(limit)s
"""
"""Threads of rollouts are not listed."""

GET_THREAD = "select id, title, created_at from thread where id = %s"

INSERT_THREAD = "insert into thread (id, tenant_id, title) values (%s, %s, %s)"

GET_SCOPE = """
    select coalesce((select scope from run where thread_id = thread.id order by created_at desc limit 1), '{}')
      from thread where id = %s
"""
"""Scope of the latest run of a thread. No row means that the tenant has no such thread."""

FIND_REQUESTED_TOOL_POLICY = """
    select requested_tool_policy from run where thread_id = %s order by created_at desc limit 1
"""


FIND_REPORT_STYLE = "select report_style from run where thread_id = %s order by created_at desc limit 1"


async def insert_thread(connection: Connection, tenant_id: UUID, thread_id: UUID, title: str) -> None:
    await connection.execute(INSERT_THREAD, (thread_id, tenant_id, title))


async def get_scope(connection: Connection, thread_id: UUID) -> dict[str, Any]:
    """Return the scope of a thread's latest run, for follow-up questions.

    Raises `NotFound` if there is no such thread.
    """
    row = await (await connection.execute(GET_SCOPE, (thread_id,))).fetchone()
    if row is None:
        raise NotFound("thread", str(thread_id))
    return row[0]


async def find_requested_tool_policy(connection: Connection, thread_id: UUID) -> dict[str, Any] | None:
    """Return the tool policy requested with the latest run of a thread.

    `None` means that it had the default.
    """
    row = await (await connection.execute(FIND_REQUESTED_TOOL_POLICY, (thread_id,))).fetchone()
    return row[0] if row else None


async def find_report_style(connection: Connection, thread_id: UUID) -> ReportStyle | None:
    """Return the report style of the latest run of a thread. `None` means that it had none."""
    row = await (await connection.execute(FIND_REPORT_STYLE, (thread_id,))).fetchone()
    return parse_report_style(row[0]) if row else None


@dataclass(frozen=True, slots=True)
class ThreadRow:
    id: UUID
    title: str
    created_at: datetime


async def list_threads(connection: Connection, before: PageKey | None, limit: int) -> list[ThreadRow]:
    """Return threads after `before`, newest first."""
    at, id = before or (None, None)
    cursor = await connection.execute(LIST_THREADS, {"before_at": at, "before_id": id, "limit": limit})
    return [ThreadRow(*row) for row in await cursor.fetchall()]


async def get_thread(connection: Connection, thread_id: UUID) -> ThreadRow:
    """Return a thread. Raises `NotFound` if it does not exist."""
    row = await (await connection.execute(GET_THREAD, (thread_id,))).fetchone()
    if row is None:
        raise NotFound("thread", str(thread_id))
    return ThreadRow(*row)
