"""Threads as rows, and what a follow-up run inherits from the runs of its thread."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.follow_up import FollowUpKind, outcome_from_json
from offing.core.model import EngineConfig, engine_from_json
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

HAS_LATEST_RUN_REPORT = """
    select exists (select from report where report.run_id = run.id)
      from run where thread_id = %s order by created_at desc, id desc limit 1
"""

FIND_LATEST_REPORT = """
    select run.id, report.version, report.body->'follow_up',
           (select max(version) from report as earlier where earlier.run_id =
             (report.body->'follow_up'->>'run_id')::uuid) as earlier_version,
           (select edited.run_id from report as edited where edited.edited_in = run.id limit 1) as edited_run
      from run
           join lateral (select version, body from report where report.run_id = run.id order by version desc limit 1)
             as report on true
     where run.thread_id = %(thread)s and (%(run)s::uuid is null or run.id = %(run)s)
     order by run.created_at desc, run.id desc limit 1
"""

GET_LATEST_ENGINES = "select engines from run where thread_id = %s order by created_at desc, id desc limit 1"

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


async def has_latest_run_report(connection: Connection, thread_id: UUID) -> bool:
    """Return whether the latest run of a thread has a report."""
    row = await (await connection.execute(HAS_LATEST_RUN_REPORT, (thread_id,))).fetchone()
    return bool(row and row[0])


async def find_latest_report(connection: Connection, thread_id: UUID, run_id: UUID | None) -> tuple[UUID, int] | None:
    """Return the run and the version of the latest report of a thread, or of one of its runs.

    An answer to a question on a report is not a new version of it, and what an edit made is a version of the report
    that it edited. Of both, the newest version of the earlier report is returned. `None` means that there is none.
    """
    row = await (await connection.execute(FIND_LATEST_REPORT, {"thread": thread_id, "run": run_id})).fetchone()
    if row is None:
        return None
    run, version, stored, earlier_version, edited_run = row
    outcome = outcome_from_json(stored) if stored else None
    if outcome is not None and (outcome.kind is FollowUpKind.QUESTION or edited_run is not None):
        return outcome.run_id, earlier_version or outcome.version
    return run, version


async def get_engines(connection: Connection, thread_id: UUID) -> dict[str, EngineConfig]:
    """Return the engines of the roles of a thread's latest run. A thread without a run has none."""
    row = await (await connection.execute(GET_LATEST_ENGINES, (thread_id,))).fetchone()
    return {role: engine_from_json(choice) for role, choice in row[0].items()} if row else {}


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
