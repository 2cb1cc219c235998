"""Assistants of a tenant as rows, in all their versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg import AsyncCursor
from psycopg.errors import UniqueViolation
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.storage.pool import Connection

COLUMNS = """
    a.id, v.graph, v.name, v.description, v.config, v.context, a.metadata, v.version, a.created_at, a.updated_at
"""

JOINED = "assistant a join assistant_version v on v.assistant_id = a.id and v.version = a.version"

FIND = f"select {COLUMNS} from {JOINED} where a.id = %s"

CHECK_NOT_STORED = "select 1 / (not exists (select from assistant where id = %s))::int"

LIST = f"select {COLUMNS} from {JOINED} order by a.created_at desc, a.id desc"

LIST_VERSIONS = """
    select a.id, v.graph, v.name, v.description, v.config, v.context, v.metadata, v.version, v.created_at, v.created_at
      from assistant a join assistant_version v on v.assistant_id = a.id
     where a.id = %(id)s and v.metadata @> %(metadata)s
     order by v.version desc limit %(limit)s offset %(offset)s
"""

INSERT = "insert into assistant (id, tenant_id, version, metadata) values (%(id)s, %(tenant)s, 1, %(metadata)s)"

INSERT_VERSION = """
    insert into assistant_version (assistant_id, version, tenant_id, graph, name, description, config, context,
                                   metadata)
    select %(id)s, coalesce(max(version), 0) + 1, %(tenant)s, %(graph)s, %(name)s, %(description)s, %(config)s,
           %(context)s, %(metadata)s
      from assistant_version where assistant_id = %(id)s
    returning version
"""

USE_VERSION = """
    update assistant a set version = v.version, metadata = v.metadata, updated_at = clock_timestamp()
      from assistant_version v where a.id = %(id)s and v.assistant_id = a.id and v.version = %(version)s
"""

LOCK = "select id from assistant where id = %s for update"

DELETE = "delete from assistant where id = %s"


@dataclass(frozen=True, slots=True)
class AssistantRow:
    id: UUID
    graph: str
    name: str
    description: str | None
    config: dict[str, Any]
    context: dict[str, Any]
    metadata: dict[str, Any]
    version: int
    created_at: datetime
    updated_at: datetime


async def find_assistant(connection: Connection, assistant_id: UUID) -> AssistantRow | None:
    """Return a stored assistant. `None` means that there is none."""
    return await (await send_find(connection, assistant_id)).read()


async def send_find(connection: Connection, assistant_id: UUID) -> "SentFind":
    """Find a stored assistant. In a pipelined transaction, this does not wait."""
    return SentFind(await connection.execute(FIND, (assistant_id,)))


async def send_absence_check(connection: Connection, assistant_id: UUID) -> None:
    """Let the transaction fail if the assistant is stored (`Assumptions.check`)."""
    await connection.execute(CHECK_NOT_STORED, (assistant_id,))


@dataclass(frozen=True, slots=True)
class SentFind:
    """A search for an assistant that may be waiting in a pipeline."""

    cursor: AsyncCursor[TupleRow]

    async def read(self) -> AssistantRow | None:
        """Return the assistant. `None` means that there is none. Waits if the transaction is still in progress."""
        row = await self.cursor.fetchone()
        return AssistantRow(*row) if row else None


async def list_assistants(connection: Connection) -> list[AssistantRow]:
    """Return the stored assistants, newest first."""
    return [AssistantRow(*row) for row in await (await connection.execute(LIST)).fetchall()]


async def list_versions(
    connection: Connection, assistant_id: UUID, metadata: Mapping[str, Any], limit: int, offset: int
) -> list[AssistantRow]:
    """Return versions of an assistant, newest first."""
    values = {"id": assistant_id, "metadata": _jsonb(metadata), "limit": limit, "offset": offset}
    return [AssistantRow(*row) for row in await (await connection.execute(LIST_VERSIONS, values)).fetchall()]


async def insert_assistant(connection: Connection, tenant_id: UUID, new: AssistantRow) -> bool:
    """Store an assistant with its first version. Return false if there is one with this id."""
    try:
        async with connection.transaction():
            values = {"id": new.id, "tenant": tenant_id, "metadata": _jsonb(new.metadata)}
            await connection.execute(INSERT, values)
            await insert_version(connection, tenant_id, new)
    except UniqueViolation:
        return False
    return True


async def lock_assistant(connection: Connection, assistant_id: UUID) -> None:
    """Lock an assistant until the transaction ends. Raises `NotFound`."""
    if await (await connection.execute(LOCK, (assistant_id,))).fetchone() is None:
        raise NotFound("assistant", str(assistant_id))


async def insert_version(connection: Connection, tenant_id: UUID, new: AssistantRow) -> int:
    """Store another version and return its number. The caller has locked the assistant or created it."""
    values = {
        "id": new.id,
        "tenant": tenant_id,
        "graph": new.graph,
        "name": new.name,
        "description": new.description,
        "config": _jsonb(new.config),
        "context": _jsonb(new.context),
        "metadata": _jsonb(new.metadata),
    }
    row = await (await connection.execute(INSERT_VERSION, values)).fetchone()
    assert row is not None
    return row[0]


async def use_version(connection: Connection, assistant_id: UUID, version: int) -> bool:
    """Use a version of an assistant from now on. Return false if there is no such version."""
    return (await connection.execute(USE_VERSION, {"id": assistant_id, "version": version})).rowcount > 0


async def delete_assistant(connection: Connection, assistant_id: UUID) -> bool:
    """Delete an assistant with its versions. Return false if there is none."""
    return (await connection.execute(DELETE, (assistant_id,))).rowcount > 0


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
