"""Checkpoints of a run in Postgres, protected by the fencing token.

A worker whose claim has ended cannot save. A checkpoint is a row without its large values. Those
have separate rows that contain only the changes since the previous version (`state_values`).
The caller decides which checkpoints are written, and when.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from langgraph.checkpoint.base import Checkpoint
from psycopg import AsyncCursor
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from offing.core.checkpoint import StoredCheckpoint, TaskWrite
from offing.core.errors import LeaseLostError, StateTooLargeError
from offing.core.run import FencingToken
from offing.storage import checkpoint_cleanup, checkpoint_reads
from offing.storage.checkpoint_reads import checkpoint_from_row
from offing.storage.fencing_sql import ASSERT_OWNED, LOCK_OWNED_RUN, fence_parameters, lease_errors
from offing.storage.pool import Connection, Database
from offing.storage.state_serializer import StateSerializer, build_serializer
from offing.storage.state_values import EncodedValues, ValueEncoder

MAX_STATE_BYTES = 256 * 1024
"""Maximum size of the state of a graph that keeps its content in steps."""

MAX_CONTENT_STATE_BYTES = 16 * 1024 * 1024
"""Maximum size of the state of a graph that keeps content in its state, for example one that was
written for LangGraph alone.
"""

INSERT_CHECKPOINT = f"""
    saved as (
    insert into checkpoint (thread_id, ns, checkpoint_id, parent_id, tenant_id, run_id, fence, superstep, turn, body,
                            metadata, channels, versions, delta_channels)
    select %(thread)s, %(ns)s, %(id)s, %(parent)s, %(tenant)s, %(run)s, %(fence)s, %(superstep)s, %(turn)s, %(body)s,
           %(metadata)s, %(channels)s, %(versions)s, %(delta)s
      from guard
    on conflict (thread_id, ns, checkpoint_id)
    do update set body = excluded.body, metadata = excluded.metadata, channels = excluded.channels,
                  versions = excluded.versions, delta_channels = excluded.delta_channels)
    select {ASSERT_OWNED}
"""

PUT_CHECKPOINT = f"with guard as ({LOCK_OWNED_RUN}), {INSERT_CHECKPOINT}"

INSERT_WRITES = """
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
"""LangGraph keeps the first ordinary write of a task at a checkpoint, and the last special write."""

PUT_VALUES = f"""
    with guard as ({LOCK_OWNED_RUN}),
    stored as (
      insert into checkpoint_value (thread_id, ns, channel, version, tenant_id, base_version, type, item_count, body)
      select %(thread)s, %(ns)s, v.channel, v.version, %(tenant)s, v.base_version, v.type, v.item_count, v.body
        from guard cross join unnest(%(value_channels)s::text[], %(value_versions)s::text[], %(bases)s::text[],
                                     %(types)s::text[], %(items)s::int[], %(bodies)b::bytea[])
          as v(channel, version, base_version, type, item_count, body)
      on conflict do nothing),
    written as ({INSERT_WRITES}),
    {INSERT_CHECKPOINT}
"""

PUT_WRITES = f"with guard as ({LOCK_OWNED_RUN}), written as ({INSERT_WRITES}) select {ASSERT_OWNED}"


SentCheckpoint = AsyncCursor[TupleRow]
"""A read of a checkpoint that may be waiting in a pipeline."""


async def send_find_latest(connection: Connection, thread_id: UUID | None, ns: str) -> SentCheckpoint:
    """Read the latest checkpoint of a namespace. In a pipelined transaction, this does not wait.

    A thread of `None` has no checkpoints.
    """
    return await connection.execute(checkpoint_reads.GET_LATEST_CHECKPOINT, (thread_id, ns))


@dataclass(frozen=True, slots=True)
class PreparedCheckpoint:
    """An encoded checkpoint that is ready to be written."""

    parameters: Mapping[str, Any]
    has_values: bool
    """Whether it has additional rows: values, or writes from which its channels are rebuilt."""


class PostgresCheckpointStore:
    """The checkpoints of one claim's thread. An object is not shared between claims.

    If `content_types` is `None`, the graph keeps its state small. Otherwise the state contains
    content, in messages and in these classes, and only changes of the content are stored.
    """

    def __init__(self, database: Database, fence: FencingToken, content_types: Sequence[type] | None = None) -> None:
        self.serde: StateSerializer = build_serializer(content_types or ())
        self._database, self._fence, self._by_new = database, fence, content_types is not None
        self._limit = MAX_STATE_BYTES if content_types is None else MAX_CONTENT_STATE_BYTES
        self._values = ValueEncoder(self.serde)

    @property
    def thread(self) -> str:
        return str(self._fence.thread_id)

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self._database.transaction(self._fence.tenant_id, pipelined=True)

    def prepare(
        self,
        ns: str,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        *,
        parent_id: str | None,
        turn: int | None,
        delta_channels: Sequence[str],
        parent_writes: Sequence[TaskWrite],
    ) -> PreparedCheckpoint:
        """Encode a checkpoint. Raises `StateTooLargeError`.

        `delta_channels` are the channels that are rebuilt from earlier checkpoints and from
        `parent_writes`, which are written at the parent.
        """
        encoded = self._values.encode(ns, checkpoint, incremental=self._by_new)
        _, body = self.serde.dumps_typed({**checkpoint, "channel_values": encoded.inline})
        writes = self._write_columns(parent_id, parent_writes)
        self._check_size(checkpoint, encoded, len(body), sum(map(len, writes["write_bodies"])))
        parameters = {
            **self._guard_parameters(),
            **writes,
            **_value_columns(encoded),
            "ns": ns,
            "id": checkpoint["id"],
            "parent": parent_id,
            "superstep": metadata.get("step", -1),
            "turn": turn,
            "body": body,
            "metadata": Jsonb(metadata, dumps=orjson.dumps),
            "delta": list(delta_channels),
        }
        return PreparedCheckpoint(parameters, bool(encoded.rows or parent_writes))

    async def put_checkpoint(self, connection: Connection, prepared: PreparedCheckpoint) -> None:
        """Write a checkpoint in the caller's transaction. Raises `LeaseLostError`."""
        put = PUT_VALUES if prepared.has_values else PUT_CHECKPOINT
        await self._execute_owned(connection, put, prepared.parameters)

    async def put_writes(
        self, connection: Connection, ns: str, checkpoint_id: str, writes: Sequence[TaskWrite]
    ) -> None:
        """Write the writes of a task at a checkpoint.

        If they are too large, nothing is written. Raises `LeaseLostError`.
        """
        columns = self._write_columns(checkpoint_id, writes)
        if sum(map(len, columns["write_bodies"])) <= self._limit:
            await self._execute_owned(connection, PUT_WRITES, {**self._guard_parameters(), "ns": ns, **columns})

    async def delete_namespaces(self, connection: Connection, namespaces: Sequence[str]) -> None:
        """Delete what subgraphs stored in calls that have ended. Raises `LeaseLostError`."""
        self._values.drop_namespaces(namespaces)
        await self._execute_fenced(connection, checkpoint_cleanup.DELETE_NAMESPACES, {"namespaces": list(namespaces)})

    async def find_checkpoint(
        self, connection: Connection, ns: str, checkpoint_id: str | None
    ) -> StoredCheckpoint | None:
        """Return a checkpoint.

        If `checkpoint_id` is `None`, return the latest one of the namespace. `None` means that
        there is none.
        """
        thread = self._fence.thread_id
        if checkpoint_id is None:
            return await self.read_sent(connection, ns, await send_find_latest(connection, thread, ns))
        cursor = await connection.execute(checkpoint_reads.GET_CHECKPOINT, (thread, ns, checkpoint_id))
        return await self.read_sent(connection, ns, cursor)

    async def read_sent(self, connection: Connection, ns: str, sent: SentCheckpoint) -> StoredCheckpoint | None:
        """Return the checkpoint that a statement of this transaction reads. `None` means that there is none."""
        row = await sent.fetchone()
        if row is None:
            return None
        checkpoint = checkpoint_from_row(self.serde, row)
        rows = await checkpoint_reads.read_values(connection, self._fence.thread_id, ns, [checkpoint])
        self._values.cache_versions(ns, checkpoint.body["channel_versions"], checkpoint.references, rows)
        writes = await checkpoint_reads.read_writes(connection, self.serde, self._fence.thread_id, [checkpoint])
        return checkpoint.build_stored_checkpoint(self.serde, rows, writes)

    async def list_checkpoints(
        self,
        connection: Connection,
        ns: str | None,
        checkpoint_id: str | None,
        metadata: Mapping[str, Any],
        before_id: str | None,
        limit: int,
    ) -> Sequence[StoredCheckpoint]:
        """Return checkpoints of a namespace, the last written first. `None` means no filter."""
        where = {"thread": self._fence.thread_id, "ns": ns, "id": checkpoint_id, "before": before_id, "limit": limit}
        return await checkpoint_reads.list_checkpoints(connection, self.serde, where, metadata)

    async def list_ancestors(
        self, connection: Connection, ns: str, checkpoint_id: str, channels: Sequence[str], limit: int
    ) -> Sequence[StoredCheckpoint]:
        """Return a checkpoint and its ancestors, with values and writes of these channels only."""
        where = {"thread": self._fence.thread_id, "ns": ns, "id": checkpoint_id, "limit": limit}
        return await checkpoint_reads.list_ancestors(connection, self.serde, where, channels)

    async def get_call_roots(self, connection: Connection) -> Mapping[str, str]:
        """Return the namespaces of called subgraphs with stored checkpoints.

        Each has the root checkpoint of its call as its value.
        """
        cursor = await connection.execute(checkpoint_reads.LIST_CALLS, (self._fence.thread_id,))
        return dict(await cursor.fetchall())

    async def copy_from_thread(self, connection: Connection, thread_id: UUID) -> None:
        """Copy all checkpoints of another thread to this one. Raises `LeaseLostError`."""
        await self._execute_fenced(connection, checkpoint_cleanup.COPY_THREAD, {"source": thread_id})

    async def prune(self, connection: Connection, keep_latest: int) -> None:
        """Delete all but the latest checkpoints of each namespace and what those need.

        `keep_latest` is the number to keep per namespace. Raises `LeaseLostError`.
        """
        await self._execute_fenced(connection, checkpoint_cleanup.DELETE_ALL_BUT_LATEST, {"keep": keep_latest})

    async def delete_runs(self, connection: Connection, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs that no other checkpoint needs.

        Raises `LeaseLostError`.
        """
        await self._execute_fenced(connection, checkpoint_cleanup.DELETE_RUNS, {"run_ids": list(run_ids)})

    async def delete_all(self, connection: Connection) -> None:
        """Delete all checkpoints of the thread. Raises `LeaseLostError`."""
        await self._execute_fenced(connection, checkpoint_cleanup.DELETE_THREAD, {})

    async def _execute_owned(self, connection: Connection, statement: str, parameters: Mapping[str, Any]) -> None:
        """Execute a statement that fails if the claim is lost. In a pipelined transaction, this does not wait."""
        with lease_errors():
            await connection.execute(statement, parameters)  # type: ignore[arg-type]

    async def _execute_fenced(self, connection: Connection, statement: str, parameters: Mapping[str, Any]) -> None:
        guarded = {**self._guard_parameters(), **parameters}
        if await (await connection.execute(statement, guarded)).fetchone() is None:  # type: ignore[arg-type]
            raise LeaseLostError(str(self._fence.run_id), self._fence.number)

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

    def _check_size(self, checkpoint: Checkpoint, encoded: EncodedValues, body_bytes: int, write_bytes: int) -> None:
        size = body_bytes + sum(encoded.sizes_bytes.values()) + write_bytes
        if size > self._limit:
            raise StateTooLargeError(_describe_excess(self.serde, checkpoint, size, self._limit))

    def _guard_parameters(self) -> dict[str, Any]:
        fence = self._fence
        return {**fence_parameters(fence), "thread": fence.thread_id, "tenant": fence.tenant_id}


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


def _describe_excess(serde: StateSerializer, checkpoint: Checkpoint, size_bytes: int, max_bytes: int) -> str:
    values = checkpoint["channel_values"]
    sizes = {name: len(serde.dumps_typed(value)[1]) for name, value in values.items()}
    largest_channel = max(sizes, key=lambda name: sizes[name], default="")
    remedy = (
        "record its content as a step and store the seq of the step in the state."
        if max_bytes == MAX_STATE_BYTES
        else "store less data in it."
    )
    return (
        f"The state of the graph has {size_bytes} bytes; the maximum is {max_bytes}. Its largest key is "
        f"{largest_channel!r} with {sizes.get(largest_channel, 0)} bytes: {remedy}"
    )
