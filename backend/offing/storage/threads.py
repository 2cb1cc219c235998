"""Threads as rows, and what a follow-up takes over from the runs of its thread."""

from typing import Any
from uuid import UUID

from offing.core.errors import NotFound
from offing.storage.pool import Connection

INSERT = "insert into thread (id, tenant_id, title) values (%s, %s, %s)"

SCOPE = """
    select coalesce((select scope from run where thread_id = thread.id order by created_at desc limit 1), '{}')
      from thread where id = %s
"""
"""What the latest run of a thread could see. No row: the tenant has no such thread."""

POLICY = """
    select policy_given from run where thread_id = %s order by created_at desc limit 1
"""


async def insert(connection: Connection, tenant: UUID, thread: UUID, title: str) -> None:
    await connection.execute(INSERT, (thread, tenant, title))


async def scope(connection: Connection, thread: UUID) -> dict[str, Any]:
    """What of the library a thread's latest run could see, for follow-ups. Raises NotFound."""
    row = await (await connection.execute(SCOPE, (thread,))).fetchone()
    if row is None:
        raise NotFound("thread", str(thread))
    return row[0]


async def policy(connection: Connection, thread: UUID) -> dict[str, Any] | None:
    """The tool policy that was given with the latest question of a thread. None: it had the default."""
    row = await (await connection.execute(POLICY, (thread,))).fetchone()
    return row[0] if row else None
