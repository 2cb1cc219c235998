"""Read checkpoints: their rows, the values that they refer to, and the writes of tasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.checkpoint import StoredCheckpoint, TaskWrite
from offing.storage.pool import Connection
from offing.storage.state_serializer import StateSerializer
from offing.storage.state_values import ValueRow, ValueRows

COLUMNS = "ns, checkpoint_id, parent_id, run_id, body, metadata, channels, versions"

GET_LATEST_CHECKPOINT = f"select {COLUMNS} from checkpoint where thread_id = %s and ns = %s order by nth desc limit 1"
"""Ordered by time of writing. The ids follow the clocks of workers, and a fork's supersteps begin
earlier.
"""

GET_CHECKPOINT = f"select {COLUMNS} from checkpoint where thread_id = %s and ns = %s and checkpoint_id = %s"

LIST_CHECKPOINTS = f"""
    select {COLUMNS} from checkpoint
     where thread_id = %(thread)s and (%(ns)s::text is null or ns = %(ns)s)
       and (%(id)s::text is null or checkpoint_id = %(id)s) and metadata @> %(metadata)s
       and case when %(before)s::text is null then true
                when exists (select from checkpoint b where b.thread_id = %(thread)s and b.checkpoint_id = %(before)s)
                then nth < (select min(b.nth) from checkpoint b
                             where b.thread_id = %(thread)s and b.checkpoint_id = %(before)s)
                else checkpoint_id < %(before)s end
     order by nth desc limit %(limit)s
"""
"""LangGraph looks for what a subgraph stored before a checkpoint of the graph that called it."""

LIST_ANCESTORS = f"""
    with recursive walk(depth, checkpoint_id, parent_id) as (
      select 1, checkpoint_id, parent_id from checkpoint
       where thread_id = %(thread)s and ns = %(ns)s and checkpoint_id = %(id)s
      union all
      select w.depth + 1, c.checkpoint_id, c.parent_id from walk w cross join lateral (
        select checkpoint_id, parent_id from checkpoint
         where thread_id = %(thread)s and ns = %(ns)s and checkpoint_id = w.parent_id limit 1) as c
       where w.depth < %(limit)s)
    select c.* from walk w cross join lateral (
      select {COLUMNS} from checkpoint
       where thread_id = %(thread)s and ns = %(ns)s and checkpoint_id = w.checkpoint_id limit 1) as c
     order by w.depth
"""

READ_VALUES = """
    with recursive part(channel, version, base_version) as (
      select v.channel, v.version, v.base_version
        from unnest(%(channels)s::text[], %(versions)s::text[]) as wanted(channel, version) cross join lateral (
          select channel, version, base_version from checkpoint_value
           where thread_id = %(thread)s and ns = %(ns)s and channel = wanted.channel and version = wanted.version
           limit 1) as v
      union
      select v.channel, v.version, v.base_version from part p cross join lateral (
        select channel, version, base_version from checkpoint_value
         where thread_id = %(thread)s and ns = %(ns)s and channel = p.channel and version = p.base_version
         limit 1) as v)
    select v.* from part p cross join lateral (
      select channel, version, base_version, type, item_count, body from checkpoint_value
       where thread_id = %(thread)s and ns = %(ns)s and channel = p.channel and version = p.version limit 1) as v
"""
"""Each step is a lookup by key, for any row count that the planner expects for the thread."""

READ_WRITES = """
    select checkpoint_id, task_id, idx, task_path, channel, type, body from checkpoint_write
     where thread_id = %(thread)s and ns = %(ns)s and checkpoint_id = any(%(ids)s)
       and (%(channels)s::text[] is null or channel = any(%(channels)s))
"""

LIST_CALLS = """
    select distinct ns, coalesce(metadata->'parents'->>'', '') from checkpoint where thread_id = %s and ns like '%%:%%'
"""

GET_LAST_CHECKPOINT_OF_RUN = f"""
    select {COLUMNS}, thread_id from checkpoint where run_id = %s and ns = '' order by nth desc limit 1
"""


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint without the values that it refers to."""

    ns: str
    id: str
    parent_id: str | None
    run_id: UUID | None
    """The run that wrote it. `None` means that the run was deleted."""
    body: dict[str, Any]
    metadata: Mapping[str, Any]
    references: Mapping[str, str]
    """Stored versions of the channels whose values have rows of their own."""

    def build_stored_checkpoint(
        self, serde: StateSerializer, rows: ValueRows, writes: Mapping[str, Sequence[TaskWrite]]
    ) -> StoredCheckpoint:
        """Return the checkpoint with its values and its task writes."""
        values = {channel: rows.get_value(serde, channel, version) for channel, version in self.references.items()}
        checkpoint = {**self.body, "channel_values": {**self.body["channel_values"], **values}}
        pending_writes = tuple(sorted(writes.get(self.id, ()), key=lambda write: write.sort_key))
        return StoredCheckpoint(
            self.ns, self.id, self.parent_id, self.run_id, checkpoint, self.metadata, pending_writes
        )

    def with_channels(self, channels: Sequence[str]) -> "CheckpointRow":
        """Return a copy with only these channels."""
        values = {name: value for name, value in self.body["channel_values"].items() if name in channels}
        references = {name: version for name, version in self.references.items() if name in channels}
        body = {**self.body, "channel_values": values}
        return CheckpointRow(self.ns, self.id, self.parent_id, self.run_id, body, self.metadata, references)


def checkpoint_from_row(serde: StateSerializer, row: Sequence[Any]) -> CheckpointRow:
    ns, id, parent, run, body, metadata, channels, versions = row[:8]
    references = dict(zip(channels, versions, strict=True))
    return CheckpointRow(ns, id, parent, run, serde.loads_typed(("msgpack", body)), metadata, references)


async def read_values(
    connection: Connection, thread_id: UUID | None, ns: str, checkpoints: Iterable[CheckpointRow]
) -> ValueRows:
    """Read all values that these checkpoints of a namespace refer to, in one query."""
    references = {(channel, version) for row in checkpoints for channel, version in row.references.items()}
    if not references:
        return ValueRows(())
    channels, versions = zip(*references, strict=True)
    parameters = {"thread": thread_id, "ns": ns, "channels": list(channels), "versions": list(versions)}
    return ValueRows([ValueRow(*row) for row in await (await connection.execute(READ_VALUES, parameters)).fetchall()])


async def read_writes(
    connection: Connection,
    serde: StateSerializer,
    thread_id: UUID | None,
    checkpoints: Sequence[CheckpointRow],
    channels: Sequence[str] | None = None,
) -> dict[str, list[TaskWrite]]:
    """Read the task writes of these checkpoints of a namespace, by checkpoint.

    `channels` `None` means all channels.
    """
    if not checkpoints:
        return {}
    parameters = {"thread": thread_id, "ns": checkpoints[0].ns, "ids": [row.id for row in checkpoints]}
    parameters["channels"] = None if channels is None else list(channels)
    writes: dict[str, list[TaskWrite]] = {}
    for id, task, idx, path, channel, kind, body in await (
        await connection.execute(READ_WRITES, parameters)
    ).fetchall():
        writes.setdefault(id, []).append(TaskWrite(task, idx, path, channel, serde.loads_typed((kind, body))))
    return writes


async def list_checkpoints(
    connection: Connection, serde: StateSerializer, parameters: Mapping[str, Any], metadata: Mapping[str, Any]
) -> list[StoredCheckpoint]:
    query_parameters = {**parameters, "metadata": Jsonb(metadata, dumps=orjson.dumps)}
    rows = await (await connection.execute(LIST_CHECKPOINTS, query_parameters)).fetchall()
    checkpoints = [checkpoint_from_row(serde, row) for row in rows]
    whole: dict[tuple[str, str], StoredCheckpoint] = {}
    for ns in {row.ns for row in checkpoints}:
        same = [row for row in checkpoints if row.ns == ns]
        values = await read_values(connection, parameters["thread"], ns, same)
        writes = await read_writes(connection, serde, parameters["thread"], same)
        whole |= {(ns, row.id): row.build_stored_checkpoint(serde, values, writes) for row in same}
    return [whole[row.ns, row.id] for row in checkpoints]


async def list_ancestors(
    connection: Connection, serde: StateSerializer, parameters: Mapping[str, Any], channels: Sequence[str]
) -> list[StoredCheckpoint]:
    rows = await (await connection.execute(LIST_ANCESTORS, parameters)).fetchall()
    checkpoints = [checkpoint_from_row(serde, row).with_channels(channels) for row in rows]
    values = await read_values(connection, parameters["thread"], parameters["ns"], checkpoints)
    writes = await read_writes(connection, serde, parameters["thread"], checkpoints, channels)
    return [row.build_stored_checkpoint(serde, values, writes) for row in checkpoints]


async def find_last_state(connection: Connection, serde: StateSerializer, run_id: UUID) -> Mapping[str, Any] | None:
    """Return the channel values of the last checkpoint of a run.

    `None` means that it has no checkpoint.
    """
    row = await (await connection.execute(GET_LAST_CHECKPOINT_OF_RUN, (run_id,))).fetchone()
    if row is None:
        return None
    checkpoint = checkpoint_from_row(serde, row)
    values = await read_values(connection, row[-1], "", [checkpoint])
    return checkpoint.build_stored_checkpoint(serde, values, {}).checkpoint["channel_values"]
