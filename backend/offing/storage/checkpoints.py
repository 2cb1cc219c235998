"""Checkpoints of a run in Postgres, fenced: a worker that lost the run cannot save.

A checkpoint is a row without its large values. Those are rows of their own, each with what is new in it since the
version before (`state_values`). Which checkpoints are written, and when, is decided by the caller.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from langgraph.checkpoint.base import Checkpoint
from psycopg.types.json import Jsonb

from offing.core.checkpoint import StoredCheckpoint, TaskWrite
from offing.core.errors import Fenced, StateTooLarge
from offing.core.run import Fence
from offing.storage import checkpoint_pruning, checkpoint_reading
from offing.storage.checkpoint_reading import checkpoint_from_row
from offing.storage.fencing import SHARED, ours
from offing.storage.plain_state import PlainStateSerializer, serializer
from offing.storage.pool import Connection, Database
from offing.storage.state_values import EncodedValues, ValueEncoder

LIMIT = 256 * 1024
"""Bytes of the state of a graph that keeps its content in steps."""

CONTENT_LIMIT = 16 * 1024 * 1024
"""Bytes of the whole state of a graph whose state holds content, as one that is written for LangGraph alone does."""

INSERT = """
    insert into checkpoint (thread_id, ns, checkpoint_id, parent_id, tenant_id, run_id, fence, superstep, turn, body,
                            metadata, channels, versions, delta)
    select %(thread)s, %(ns)s, %(id)s, %(parent)s, %(tenant)s, %(run)s, %(fence)s, %(superstep)s, %(turn)s, %(body)s,
           %(metadata)s, %(channels)s, %(versions)s, %(delta)s
      from guard
    on conflict (thread_id, ns, checkpoint_id)
    do update set body = excluded.body, metadata = excluded.metadata, channels = excluded.channels,
                  versions = excluded.versions, delta = excluded.delta
    returning 1
"""

PUT = f"with guard as ({SHARED}) {INSERT}"

WRITES = """
    insert into checkpoint_write (thread_id, ns, checkpoint_id, task_id, idx, tenant_id, run_id, task_path, channel,
                                  type, body)
    select %(thread)s, %(ns)s, %(written_at)s, w.task_id, w.idx, %(tenant)s, %(run)s, w.task_path, w.channel, w.type,
           w.body
      from guard cross join unnest(%(tasks)s::text[], %(positions)s::int[], %(paths)s::text[],
                                   %(write_channels)s::text[], %(write_types)s::text[], %(write_bodies)b::bytea[])
        as w(task_id, idx, task_path, channel, type, body)
    on conflict (thread_id, ns, checkpoint_id, task_id, idx)
    do update set channel = excluded.channel, type = excluded.type, body = excluded.body
     where checkpoint_write.idx < 0
"""
"""LangGraph keeps the first of a task's ordinary writes at a checkpoint, and the last of its special ones."""

PUT_VALUES = f"""
    with guard as ({SHARED}),
    stored as (
      insert into checkpoint_value (thread_id, ns, channel, version, tenant_id, base_version, type, items, body)
      select %(thread)s, %(ns)s, v.channel, v.version, %(tenant)s, v.base_version, v.type, v.items, v.body
        from guard cross join unnest(%(value_channels)s::text[], %(value_versions)s::text[], %(bases)s::text[],
                                     %(types)s::text[], %(items)s::int[], %(bodies)b::bytea[])
          as v(channel, version, base_version, type, items, body)
      on conflict do nothing),
    written as ({WRITES})
    {INSERT}
"""

PUT_WRITES = f"with guard as ({SHARED}), written as ({WRITES}) select 1 from guard"


@dataclass(frozen=True, slots=True)
class PreparedCheckpoint:
    """A checkpoint in the form in which it is written."""

    parameters: Mapping[str, Any]
    has_values: bool
    """It has rows beside its own: values, or writes that its channels are rebuilt from."""


class PostgresCheckpoints:
    """The checkpoints of one claim's thread. Not shared between claims.

    `content` is `None` for a graph whose state is small by rule. Otherwise the state holds content, in messages and in
    these classes, and is stored by what is new in it.
    """

    def __init__(self, database: Database, fence: Fence, content: Sequence[type] | None = None) -> None:
        self.serde: PlainStateSerializer = serializer(content or ())
        self._database, self._fence, self._by_new = database, fence, content is not None
        self._limit = LIMIT if content is None else CONTENT_LIMIT
        self._values = ValueEncoder(self.serde)

    @property
    def thread(self) -> str:
        return str(self._fence.thread)

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self._database.transaction(self._fence.tenant)

    def prepare(
        self,
        ns: str,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        *,
        parent: str | None,
        turn: int | None,
        delta: Sequence[str],
        parent_writes: Sequence[TaskWrite],
    ) -> PreparedCheckpoint:
        """Encode a checkpoint. Raises StateTooLarge.

        `delta` names the channels that are rebuilt from earlier checkpoints and `parent_writes`, which are written at
        the parent.
        """
        encoded = self._values.encode(ns, checkpoint, by_new=self._by_new)
        _, body = self.serde.dumps_typed({**checkpoint, "channel_values": encoded.inline})
        writes = self._write_columns(parent, parent_writes)
        self._check_size(checkpoint, encoded, len(body), sum(map(len, writes["write_bodies"])))
        parameters = {
            **self._guard(),
            **writes,
            **_value_columns(encoded),
            "ns": ns,
            "id": checkpoint["id"],
            "parent": parent,
            "superstep": metadata.get("step", -1),
            "turn": turn,
            "body": body,
            "metadata": Jsonb(metadata, dumps=orjson.dumps),
            "delta": list(delta),
        }
        return PreparedCheckpoint(parameters, bool(encoded.rows or parent_writes))

    async def put(self, connection: Connection, prepared: PreparedCheckpoint) -> None:
        """Write a checkpoint in the caller's transaction. Raises Fenced."""
        put = PUT_VALUES if prepared.has_values else PUT
        await self._written(connection, put, prepared.parameters)

    async def put_writes(
        self, connection: Connection, ns: str, checkpoint_id: str, writes: Sequence[TaskWrite]
    ) -> None:
        """Write what a task wrote at a checkpoint: all of it, or nothing where it is too large. Raises Fenced."""
        columns = self._write_columns(checkpoint_id, writes)
        if sum(map(len, columns["write_bodies"])) <= self._limit:
            await self._written(connection, PUT_WRITES, {**self._guard(), "ns": ns, **columns})

    async def end_calls(self, connection: Connection, namespaces: Sequence[str]) -> None:
        """Remove what subgraphs stored whose calls have ended. Raises Fenced."""
        self._values.forget(namespaces)
        await self._written(connection, checkpoint_pruning.DROP_NAMESPACES, {"namespaces": list(namespaces)})

    async def get(self, connection: Connection, ns: str, id: str | None) -> StoredCheckpoint | None:
        """A checkpoint, or the latest of a namespace."""
        where = (self._fence.thread, ns)
        query, given = (checkpoint_reading.LATEST, where) if id is None else (checkpoint_reading.EXACT, (*where, id))
        row = await (await connection.execute(query, given)).fetchone()
        if row is None:
            return None
        found = checkpoint_from_row(self.serde, row)
        rows = await checkpoint_reading.values_of(connection, self._fence.thread, ns, [found])
        self._values.note(ns, found.body["channel_versions"], found.references, rows)
        writes = await checkpoint_reading.writes_of(connection, self.serde, self._fence.thread, [found])
        return found.completed(self.serde, rows, writes)

    async def list(
        self,
        connection: Connection,
        ns: str | None,
        id: str | None,
        metadata: Mapping[str, Any],
        before: str | None,
        limit: int,
    ) -> Sequence[StoredCheckpoint]:
        """Checkpoints of a namespace, the last to be written first. `None` stands for any."""
        where = {"thread": self._fence.thread, "ns": ns, "id": id, "before": before, "limit": limit}
        return await checkpoint_reading.history(connection, self.serde, where, metadata)

    async def ancestors(
        self, connection: Connection, ns: str, id: str, channels: Sequence[str], limit: int
    ) -> Sequence[StoredCheckpoint]:
        """A checkpoint and those that it follows, with values and writes of these channels alone."""
        where = {"thread": self._fence.thread, "ns": ns, "id": id, "limit": limit}
        return await checkpoint_reading.ancestors(connection, self.serde, where, channels)

    async def calls(self, connection: Connection) -> Mapping[str, str]:
        """Namespaces of called subgraphs that have stored something, with the root checkpoint of the call."""
        found = await connection.execute(checkpoint_reading.CALLS, (self._fence.thread,))
        return dict(await found.fetchall())

    async def copy_from(self, connection: Connection, thread: UUID) -> None:
        """Copy all checkpoints of another thread to this one. Raises Fenced."""
        await self._written(connection, checkpoint_pruning.COPY, {"source": thread})

    async def prune(self, connection: Connection, keep: int) -> None:
        """Remove all but the latest checkpoints of each namespace and what those need. Raises Fenced."""
        await self._written(connection, checkpoint_pruning.KEEP_LATEST, {"keep": keep})

    async def drop_runs(self, connection: Connection, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of these runs that no other checkpoint needs. Raises Fenced."""
        await self._written(connection, checkpoint_pruning.DROP_RUNS, {"run_ids": list(run_ids)})

    async def drop_all(self, connection: Connection) -> None:
        """Remove all checkpoints of the thread. Raises Fenced."""
        await self._written(connection, checkpoint_pruning.DROP_THREAD, {})

    async def _written(self, connection: Connection, statement: str, parameters: Mapping[str, Any]) -> None:
        given = {**self._guard(), **parameters}
        if await (await connection.execute(statement, given)).fetchone() is None:  # type: ignore[arg-type]
            raise Fenced(str(self._fence.run), self._fence.number)

    def _write_columns(self, checkpoint_id: str | None, writes: Sequence[TaskWrite]) -> dict[str, Any]:
        bodies = [self.serde.dumps_typed(write.value) for write in writes]
        return {
            "written_at": checkpoint_id,
            "tasks": [write.task_id for write in writes],
            "positions": [write.idx for write in writes],
            "paths": [write.task_path for write in writes],
            "write_channels": [write.channel for write in writes],
            "write_types": [kind for kind, _ in bodies],
            "write_bodies": [body for _, body in bodies],
        }

    def _check_size(self, checkpoint: Checkpoint, encoded: EncodedValues, body: int, written: int) -> None:
        size = body + sum(encoded.sizes.values()) + written
        if size > self._limit:
            raise StateTooLarge(_too_large(self.serde, checkpoint, size, self._limit))

    def _guard(self) -> dict[str, Any]:
        fence = self._fence
        return {**ours(fence), "thread": fence.thread, "tenant": fence.tenant}


def _value_columns(encoded: EncodedValues) -> dict[str, Any]:
    rows = encoded.rows
    return {
        "channels": list(encoded.references),
        "versions": list(encoded.references.values()),
        "value_channels": [row.channel for row in rows],
        "value_versions": [row.version for row in rows],
        "bases": [row.base_version for row in rows],
        "types": [row.type for row in rows],
        "items": [row.items for row in rows],
        "bodies": [row.body for row in rows],
    }


def _too_large(serde: PlainStateSerializer, checkpoint: Checkpoint, size: int, limit: int) -> str:
    values = checkpoint["channel_values"]
    sizes = {name: len(serde.dumps_typed(value)[1]) for name, value in values.items()}
    largest = max(sizes, key=lambda name: sizes[name], default="")
    remedy = "record its content as a step and keep the step's seq." if limit == LIMIT else "keep less in it."
    return (
        f"The graph's state has {size} bytes, over the limit of {limit} for a whole state. Its largest key is "
        f"{largest!r} with {sizes.get(largest, 0)} bytes: {remedy}"
    )
