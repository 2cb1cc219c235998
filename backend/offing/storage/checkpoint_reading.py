"""Read checkpoints back: their rows, the values that they refer to, and what tasks wrote at them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.checkpoint import StoredCheckpoint, TaskWrite
from offing.storage.plain_state import PlainStateSerializer
from offing.storage.pool import Connection
from offing.storage.state_values import ValueRow, ValueRows

ROW = "ns, checkpoint_id, parent_id, run_id, body, metadata, channels, versions"

LATEST = f"select {ROW} from checkpoint where thread_id = %s and ns = %s order by nth desc limit 1"
"""By the order of writing: ids follow the clocks of workers, and a fork's supersteps begin earlier."""

EXACT = f"select {ROW} from checkpoint where thread_id = %s and ns = %s and checkpoint_id = %s"

HISTORY = f"""
    select {ROW} from checkpoint
     where thread_id = %(thread)s and (%(ns)s::text is null or ns = %(ns)s)
       and (%(id)s::text is null or checkpoint_id = %(id)s) and metadata @> %(metadata)s
       and case when %(before)s::text is null then true
                when exists (select from checkpoint b where b.thread_id = %(thread)s and b.checkpoint_id = %(before)s)
                then nth < (select min(b.nth) from checkpoint b
                             where b.thread_id = %(thread)s and b.checkpoint_id = %(before)s)
                else checkpoint_id < %(before)s end
     order by nth desc limit %(limit)s
"""
"""LangGraph asks for what a subgraph stored before a checkpoint of the graph that called it."""

ANCESTORS = f"""
    with recursive walk(depth, checkpoint_id, parent_id) as (
      select 1, checkpoint_id, parent_id from checkpoint
       where thread_id = %(thread)s and ns = %(ns)s and checkpoint_id = %(id)s
      union all
      select w.depth + 1, c.checkpoint_id, c.parent_id from walk w cross join lateral (
        select checkpoint_id, parent_id from checkpoint
         where thread_id = %(thread)s and ns = %(ns)s and checkpoint_id = w.parent_id limit 1) as c
       where w.depth < %(limit)s)
    select c.* from walk w cross join lateral (
      select {ROW} from checkpoint
       where thread_id = %(thread)s and ns = %(ns)s and checkpoint_id = w.checkpoint_id limit 1) as c
     order by w.depth
"""

VALUES = """
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
      select channel, version, base_version, type, items, body from checkpoint_value
       where thread_id = %(thread)s and ns = %(ns)s and channel = p.channel and version = p.version limit 1) as v
"""
"""Each step is a look-up by key, whatever the planner expects of a thread."""

WRITES = """
    select checkpoint_id, task_id, idx, task_path, channel, type, body from checkpoint_write
     where thread_id = %(thread)s and ns = %(ns)s and checkpoint_id = any(%(ids)s)
       and (%(channels)s::text[] is null or channel = any(%(channels)s))
"""

CALLS = """
    select distinct ns, coalesce(metadata->'parents'->>'', '') from checkpoint where thread_id = %s and ns like '%%:%%'
"""

LAST_OF_RUN = f"""
    select {ROW}, thread_id from checkpoint where run_id = %s and ns = '' order by nth desc limit 1
"""


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint without the values that it refers to."""

    ns: str
    id: str
    parent: str | None
    run_id: UUID
    body: dict[str, Any]
    metadata: Mapping[str, Any]
    references: Mapping[str, str]
    """Stored versions of the channels whose values are rows of their own."""

    def completed(
        self, serde: PlainStateSerializer, rows: ValueRows, writes: Mapping[str, Sequence[TaskWrite]]
    ) -> StoredCheckpoint:
        """With the values that it refers to, and what tasks wrote at it."""
        values = {channel: rows.value(serde, channel, version) for channel, version in self.references.items()}
        checkpoint = {**self.body, "channel_values": {**self.body["channel_values"], **values}}
        found = tuple(sorted(writes.get(self.id, ()), key=lambda write: write.order))
        return StoredCheckpoint(self.ns, self.id, self.parent, self.run_id, checkpoint, self.metadata, found)

    def narrowed(self, channels: Sequence[str]) -> "CheckpointRow":
        """With these channels alone."""
        values = {name: value for name, value in self.body["channel_values"].items() if name in channels}
        references = {name: version for name, version in self.references.items() if name in channels}
        body = {**self.body, "channel_values": values}
        return CheckpointRow(self.ns, self.id, self.parent, self.run_id, body, self.metadata, references)


def checkpoint_from_row(serde: PlainStateSerializer, row: Sequence[Any]) -> CheckpointRow:
    ns, id, parent, run, body, metadata, channels, versions = row[:8]
    references = dict(zip(channels, versions, strict=True))
    return CheckpointRow(ns, id, parent, run, serde.loads_typed(("msgpack", body)), metadata, references)


async def values_of(connection: Connection, thread: UUID | None, ns: str, found: Iterable[CheckpointRow]) -> ValueRows:
    """Everything that these checkpoints of a namespace refer to, in one query."""
    wanted = {(channel, version) for row in found for channel, version in row.references.items()}
    if not wanted:
        return ValueRows(())
    channels, versions = zip(*wanted, strict=True)
    given = {"thread": thread, "ns": ns, "channels": list(channels), "versions": list(versions)}
    return ValueRows([ValueRow(*row) for row in await (await connection.execute(VALUES, given)).fetchall()])


async def writes_of(
    connection: Connection,
    serde: PlainStateSerializer,
    thread: UUID | None,
    found: Sequence[CheckpointRow],
    channels: Sequence[str] | None = None,
) -> dict[str, list[TaskWrite]]:
    """What tasks wrote at these checkpoints of a namespace, by checkpoint. `channels` `None` stands for any."""
    if not found:
        return {}
    given = {"thread": thread, "ns": found[0].ns, "ids": [row.id for row in found]}
    given["channels"] = None if channels is None else list(channels)
    writes: dict[str, list[TaskWrite]] = {}
    for id, task, idx, path, channel, kind, body in await (await connection.execute(WRITES, given)).fetchall():
        writes.setdefault(id, []).append(TaskWrite(task, idx, path, channel, serde.loads_typed((kind, body))))
    return writes


async def history(
    connection: Connection, serde: PlainStateSerializer, where: Mapping[str, Any], metadata: Mapping[str, Any]
) -> list[StoredCheckpoint]:
    given = {**where, "metadata": Jsonb(metadata, dumps=orjson.dumps)}
    rows = await (await connection.execute(HISTORY, given)).fetchall()
    found = [checkpoint_from_row(serde, row) for row in rows]
    whole: dict[tuple[str, str], StoredCheckpoint] = {}
    for ns in {row.ns for row in found}:
        same = [row for row in found if row.ns == ns]
        values = await values_of(connection, where["thread"], ns, same)
        writes = await writes_of(connection, serde, where["thread"], same)
        whole |= {(ns, row.id): row.completed(serde, values, writes) for row in same}
    return [whole[row.ns, row.id] for row in found]


async def ancestors(
    connection: Connection, serde: PlainStateSerializer, where: Mapping[str, Any], channels: Sequence[str]
) -> list[StoredCheckpoint]:
    rows = await (await connection.execute(ANCESTORS, where)).fetchall()
    found = [checkpoint_from_row(serde, row).narrowed(channels) for row in rows]
    values = await values_of(connection, where["thread"], where["ns"], found)
    writes = await writes_of(connection, serde, where["thread"], found, channels)
    return [row.completed(serde, values, writes) for row in found]


async def last_state(connection: Connection, serde: PlainStateSerializer, run: UUID) -> Mapping[str, Any] | None:
    """The channel values of the last checkpoint of a run. `None` means that it has none."""
    row = await (await connection.execute(LAST_OF_RUN, (run,))).fetchone()
    if row is None:
        return None
    found = checkpoint_from_row(serde, row)
    values = await values_of(connection, row[-1], "", [found])
    return found.completed(serde, values, {}).checkpoint["channel_values"]
