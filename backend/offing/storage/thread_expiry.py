"""Expiry of threads of LangGraph's clients: when it comes, and which states remain."""

from datetime import datetime
from uuid import UUID

from offing.core.langgraph_config import ThreadTtl
from offing.storage.checkpoint_cleanup import DELETE_UNNEEDED
from offing.storage.langgraph_runs import list_active_ids
from offing.storage.pool import Connection, Database

SET_TTL = """
    update langgraph_thread set ttl_minutes = %(minutes)s, ttl_strategy = %(strategy)s, updated_at = clock_timestamp()
     where thread_id = %(thread)s and (%(replaces)s or ttl_minutes is null)
"""

LIST_EXPIRED = "select tenant_id, thread_id from app.list_expired_threads(%s, %s)"

LOCK_EXPIRED = """
    select ttl_strategy from langgraph_thread where thread_id = %s and expires_at <= %s for update skip locked
"""

LOCK_THREAD = "select id from thread where id = %s for update"
"""Stronger than the lock of a request for a run, because Offing's own API adds runs to a thread without it: the foreign
key of such a run waits, or the expiry waits and sees the run. There is no circle with a worker that ends a run:
`LOCK_EXPIRED` does not wait.
"""

POSTPONE = "update langgraph_thread set updated_at = clock_timestamp() where thread_id = %s"

MARK_KEPT = "update langgraph_thread set expires_at = null where thread_id = %s"
"""It expires again after its next change."""

MARK_GONE = "update langgraph_thread set gone_at = clock_timestamp() where thread_id = %s"

DELETE_STATES = (
    "delete from checkpoint_write where thread_id = %s",
    "delete from checkpoint where thread_id = %s",
    "delete from checkpoint_value where thread_id = %s",
)

DELETE_CRONS = "delete from cron where thread_id = %s"

KEEP_LATEST = f"""
    with recursive of_thread as (select %(thread)s::uuid as id),
    kept as (
      select ns, checkpoint_id, parent_id, delta_channels from (
        select c.*, row_number() over (partition by ns order by nth desc) as latest
          from checkpoint c where thread_id = %(thread)s) as c
       where latest = 1 and (ns not like '%%:%%'
                             or exists (select from langgraph_thread
                                         where thread_id = %(thread)s and status = 'interrupted'))),
    {DELETE_UNNEEDED}
    select count(*) from spare
"""
"""A subgraph that was called by a task has that task's id after a colon. Its states are needed only while an interrupt
waits in it.
"""


async def set_ttl(connection: Connection, thread_id: UUID, ttl: ThreadTtl, *, replaces: bool) -> None:
    """Let a thread expire. Unless `replaces`, one that already has a time keeps it."""
    values = {"thread": thread_id, "minutes": ttl.default_ttl, "strategy": ttl.strategy, "replaces": replaces}
    await connection.execute(SET_TTL, values)


async def list_expired(database: Database, now: datetime, limit: int) -> list[tuple[UUID, UUID]]:
    """Return tenants and ids of threads that have expired."""
    return [(tenant, id) for tenant, id in await database.call_function(LIST_EXPIRED, (now, limit))]


async def expire_thread(connection: Connection, thread_id: UUID, now: datetime) -> None:
    """Do what the strategy of an expired thread says. While a run is active, the time begins anew."""
    await connection.execute(LOCK_THREAD, (thread_id,))
    row = await (await connection.execute(LOCK_EXPIRED, (thread_id, now))).fetchone()
    if row is None:
        return
    if await list_active_ids(connection, thread_id):
        await connection.execute(POSTPONE, (thread_id,))
    elif row[0] == "delete":
        await hide_thread(connection, thread_id)
    else:
        await keep_latest_states(connection, thread_id)


async def hide_thread(connection: Connection, thread_id: UUID) -> None:
    """Delete the states and the crons of a thread, which is gone for LangGraph's clients. Its runs stay."""
    for statement in (*DELETE_STATES, DELETE_CRONS, MARK_GONE):
        await connection.execute(statement, (thread_id,))


async def keep_latest_states(connection: Connection, thread_id: UUID) -> int:
    """Delete all states of a thread but the latest, and what that one needs. Return the number of deleted ones."""
    row = await (await connection.execute(KEEP_LATEST, {"thread": thread_id}, prepare=False)).fetchone()
    await connection.execute(MARK_KEPT, (thread_id,))
    return row[0] if row else 0
