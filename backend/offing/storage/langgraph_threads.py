"""Threads of LangGraph's clients as rows: their metadata and how their last run left them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.storage.pool import Connection

INSERT_THREAD = """
    insert into langgraph_thread (thread_id, tenant_id, metadata) values (%(thread)s, %(tenant)s, %(metadata)s)
    on conflict (thread_id) do nothing
"""

INSERT_BASE = "insert into thread (id, tenant_id, title) values (%s, %s, %s)"

COLUMNS = """
    t.id, t.created_at, coalesce(l.updated_at, t.created_at), coalesce(l.metadata, '{}'),
    case when exists (select from run r where r.thread_id = t.id
                         and r.status in ('queued', 'running', 'waiting', 'paused')) then 'busy'
         else coalesce(l.status, 'idle') end as status,
    (select r.graph from run r where r.thread_id = t.id and r.kind <> 'child' order by r.created_at desc, r.id desc
      limit 1),
    l.ttl_minutes, l.ttl_strategy, l.expires_at
"""

OF_STATELESS_RUN = """
    exists (select from run r join langgraph_run q on q.run_id = r.id where r.thread_id = t.id and q.deletes_thread
               and ({when}))
"""
"""The thread of a run without one ends with the run, unless the client keeps it. Offing's record of the run stays."""

GET_THREAD = f"""
    select {COLUMNS} from thread t left join langgraph_thread l on l.thread_id = t.id
     where t.id = %s and l.gone_at is null and not {OF_STATELESS_RUN.format(when="r.ended_at is not null")}
"""

THREADS = f"""
    select * from (
      select {COLUMNS} from thread t join langgraph_thread l on l.thread_id = t.id
       where l.gone_at is null and l.metadata @> %(metadata)s and l.metadata @> %(allowed)s
         and (%(ids)s::uuid[] is null or t.id = any(%(ids)s))
         and not {OF_STATELESS_RUN.format(when="true")}
    ) as listed(id, created_at, updated_at, metadata, status, graph, ttl_minutes, ttl_strategy, expires_at)
     where (%(status)s::text is null or status = %(status)s)
"""

ORDERS = {
    "thread_id": "id",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "state_updated_at": "updated_at",
    "status": "status",
}

UPDATE_METADATA = """
    insert into langgraph_thread (thread_id, tenant_id, metadata) values (%(thread)s, %(tenant)s, %(metadata)s)
    on conflict (thread_id) do update
       set metadata = langgraph_thread.metadata || excluded.metadata, updated_at = clock_timestamp()
"""

SET_STATUS = """
    insert into langgraph_thread (thread_id, tenant_id, status) values (%(thread)s, %(tenant)s, %(status)s)
    on conflict (thread_id) do update set status = excluded.status, updated_at = clock_timestamp()
"""

DELETE_THREAD = "delete from thread where id = %s"


@dataclass(frozen=True, slots=True)
class LangGraphThreadRow:
    """A thread as LangGraph's clients see it, without its state."""

    id: UUID
    created_at: datetime
    updated_at: datetime
    metadata: dict[str, Any]
    status: str
    """`idle`, `busy`, `interrupted` or `error`."""
    graph: str | None
    """The graph of its last run. `None` means that it has no run."""
    ttl_minutes: float | None
    """Time after the last change when it expires. `None` means never."""
    ttl_strategy: str | None
    expires_at: datetime | None
    """`None` means never, or not before the next change."""


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """Which threads are listed."""

    metadata: Mapping[str, Any]
    status: str | None
    ids: tuple[UUID, ...] | None
    """`None` means any thread."""
    allowed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Metadata that each thread must contain for the caller to see it."""


async def insert_thread(
    connection: Connection, tenant_id: UUID, thread_id: UUID, title: str, metadata: Mapping[str, Any]
) -> bool:
    """Create a thread. Return false if there is a thread with this id, also of another tenant."""
    try:
        async with connection.transaction():
            await connection.execute(INSERT_BASE, (thread_id, tenant_id, title))
            await _insert(connection, tenant_id, thread_id, metadata)
    except UniqueViolation:
        return False
    return True


async def _insert(connection: Connection, tenant_id: UUID, thread_id: UUID, metadata: Mapping[str, Any]) -> None:
    values = {"thread": thread_id, "tenant": tenant_id, "metadata": _jsonb(metadata)}
    await connection.execute(INSERT_THREAD, values)


async def get_thread(connection: Connection, thread_id: UUID) -> LangGraphThreadRow:
    """Return a thread. Raises `NotFound`."""
    row = await (await connection.execute(GET_THREAD, (thread_id,))).fetchone()
    if row is None:
        raise NotFound("thread", str(thread_id))
    return LangGraphThreadRow(*row)


async def list_threads(
    connection: Connection, chosen: ThreadFilter, order: str, *, descending: bool, limit: int, offset: int
) -> list[LangGraphThreadRow]:
    """Return a page of threads. `order` is a key of `ORDERS`."""
    direction = "desc" if descending else "asc"
    query = f"{THREADS} order by {ORDERS[order]} {direction}, id {direction} limit %(limit)s offset %(offset)s"
    values = {**_parameters(chosen), "limit": limit, "offset": offset}
    return [LangGraphThreadRow(*row) for row in await (await connection.execute(query.encode(), values)).fetchall()]


async def count_threads(connection: Connection, chosen: ThreadFilter) -> int:
    query = f"select count(*) from ({THREADS}) as counted"
    row = await (await connection.execute(query.encode(), _parameters(chosen))).fetchone()
    return row[0] if row else 0


async def merge_metadata(connection: Connection, tenant_id: UUID, thread_id: UUID, metadata: Mapping[str, Any]) -> None:
    """Add keys to the metadata of a thread."""
    values = {"thread": thread_id, "tenant": tenant_id, "metadata": _jsonb(metadata)}
    await connection.execute(UPDATE_METADATA, values)


async def set_status(connection: Connection, tenant_id: UUID, thread_id: UUID, status: str) -> None:
    """Record how a run or an update of the state left the thread: `idle`, `interrupted` or `error`."""
    await connection.execute(SET_STATUS, {"thread": thread_id, "tenant": tenant_id, "status": status})


async def delete_thread(connection: Connection, thread_id: UUID) -> bool:
    """Delete a thread without runs. Return false if there is no such thread."""
    return (await connection.execute(DELETE_THREAD, (thread_id,))).rowcount > 0


def _parameters(chosen: ThreadFilter) -> dict[str, Any]:
    ids: Sequence[UUID] | None = None if chosen.ids is None else list(chosen.ids)
    return {
        "metadata": _jsonb(chosen.metadata),
        "allowed": _jsonb(chosen.allowed),
        "status": chosen.status,
        "ids": ids,
    }


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
