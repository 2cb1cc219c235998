"""LangGraph's checkpoints of a run, fenced: a worker that lost the run cannot save.

The only home of the saver. State is small by rule, so a checkpoint is one row with its values in it. Within a turn
checkpoints stay in memory, because a node that runs again reads its calls back from the journal; the first superstep of
a turn is written together with the run's next step, and what is left at the end of a slice with its hand-back. A graph
that counts no turns is saved at each superstep. What finished tasks of a superstep wrote, and what its interrupts
asked, is saved where a slice ends within it, with its hand-back.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.types import Interrupt
from psycopg.types.json import Jsonb

from offing.core.errors import Fenced, StateTooLarge
from offing.core.run import Fence
from offing.storage.fencing import SHARED, ours
from offing.storage.plain_state import PlainStateSerializer
from offing.storage.pool import Connection, Database

LIMIT = 256 * 1024
"""Bytes of one checkpoint. Content belongs in steps."""

CONTENT_LIMIT = 4 * 1024 * 1024
"""The same for a graph whose state holds content, as one that is written for LangGraph alone does. Of such a run only
the latest checkpoint is kept, so that a list in its state costs its length and not the square of it."""

INSERT = """
    insert into checkpoint (thread_id, ns, checkpoint_id, parent_id, tenant_id, run_id, fence, superstep, turn, body,
                            metadata)
    select %(thread)s, %(ns)s, %(id)s, %(parent)s, %(tenant)s, %(run)s, %(fence)s, %(superstep)s, %(turn)s, %(body)s,
           %(metadata)s
      from guard
    on conflict (thread_id, ns, checkpoint_id) do update set body = excluded.body, metadata = excluded.metadata
    returning 1
"""

PUT = f"with guard as ({SHARED}) {INSERT}"

PUT_LATEST = f"""
    with guard as ({SHARED}),
    superseded as (
      delete from checkpoint
       where thread_id = %(thread)s and run_id = %(run)s and exists (select from guard)
         and (ns = %(ns)s and superstep < %(superstep)s or %(ns)s = '' and ns like '%%:%%'))
    {INSERT}
"""
"""In place of the run's earlier checkpoints of the same graph, and behind a superstep of its own graph of those of the
subgraphs that its nodes had called. A subgraph that keeps a memory of its own has no task's id after a colon, and
stays."""

PUT_WRITE = f"""
    with guard as ({SHARED})
    insert into checkpoint_write (thread_id, ns, checkpoint_id, task_id, idx, tenant_id, run_id, task_path, channel,
                                  type, body)
    select %(thread)s, %(ns)s, %(id)s, %(task)s, %(idx)s, %(tenant)s, %(run)s, %(path)s, %(channel)s, %(type)s,
           %(body)s
      from guard
    on conflict (thread_id, ns, checkpoint_id, task_id, idx)
    do update set channel = excluded.channel, type = excluded.type, body = excluded.body
    returning 1
"""

FOUND = "checkpoint_id, parent_id, body, metadata, run_id, superstep"

LATEST = f"""
    select {FOUND} from checkpoint where thread_id = %s and ns = %s order by superstep desc, checkpoint_id desc limit 1
"""
"""By superstep: ids follow the clocks of workers, which need not agree."""

EXACT = f"select {FOUND} from checkpoint where thread_id = %s and ns = %s and checkpoint_id = %s"

HISTORY = f"""
    select {FOUND} from checkpoint
     where thread_id = %s and ns = %s and (%s::text is null or checkpoint_id < %s)
     order by checkpoint_id desc limit %s
"""

WRITES = """
    select task_id, channel, type, body from checkpoint_write
     where thread_id = %s and ns = %s and checkpoint_id = %s order by task_id, idx
"""


SPECIAL = frozenset({INTERRUPT, RESUME})

RAISED_ANEW = "offing"
"""Id of interrupts that are not kept: whatever a run waits for through its context, its node asks for again."""

NOT_KEPT = frozenset({ERROR, "__error_source_node__"})
"""Errors are not kept: their node runs again, and must find the run as it was before the node."""

FORGET = "delete from checkpoint where thread_id = %s"


@dataclass(frozen=True, slots=True)
class _Unsaved:
    """A checkpoint that is in memory only."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent: str | None
    """Id of the row before it. None: it is the first."""


Due = tuple[tuple[str, _Unsaved], ...]
"""Checkpoints that wait for a transaction, each with its namespace."""


@dataclass(frozen=True, slots=True)
class _Written:
    """What the tasks of one superstep wrote so far, in memory only."""

    config: RunnableConfig
    tasks: dict[str, tuple[str, tuple[tuple[str, Any], ...]]]
    """Path and writes of each task."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands according to its latest checkpoint."""

    run: UUID
    """The run that wrote it; another than ours: our run has not begun."""
    superstep: int


def serializer(types: Sequence[type] = ()) -> PlainStateSerializer:
    """msgpack with no types but plain data, LangGraph's own and `types`; a stored blob can never name code to run."""
    return PlainStateSerializer(types)


class FencedSaver(BaseCheckpointSaver[str]):
    """The saver of one claim. Not shared between runs, so it needs no lock.

    `at_exit`: only where the claim ends is saved, by `flush`. `content`: the state holds content, in messages and in
    these classes; None: it is small by rule.
    """

    def __init__(
        self,
        database: Database,
        fence: Fence,
        *,
        turn_key: str = "",
        at_exit: bool = False,
        content: Sequence[type] | None = None,
    ) -> None:
        super().__init__(serde=serializer(content or ()))
        self._at_exit, self._holds_content = at_exit, content is not None
        self._limit = LIMIT if content is None else CONTENT_LIMIT
        self._database, self._fence, self._turn_key = database, fence, turn_key
        self._unsaved: dict[str, _Unsaved] = {}
        self._due: list[tuple[str, _Unsaved]] = []
        self._written: dict[str, _Written] = {}
        self._parents: dict[str, str] = {}
        """Id of the last row of each namespace, or of the one that is due."""
        self._turns: dict[str, int | None] = {}
        self._looked = False
        self._found: CheckpointTuple | None = None

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        ns, wanted = _where(config)
        if wanted is None and (unsaved := self._unsaved.get(ns)):
            return CheckpointTuple(unsaved.config, unsaved.checkpoint, unsaved.metadata, None, [])
        if self._looked and not ns and wanted is None:
            self._looked = False
            return self._found
        async with self._database.transaction(self._fence.tenant) as connection:
            return await self._read(connection, ns, wanted)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        ns, _ = _where(config)
        saved_as = _config(self._fence.thread, ns, checkpoint["id"])
        given = get_checkpoint_metadata(config, metadata)
        self._written.pop(ns, None)  # it is in the checkpoint now
        if not ns:
            self._forget_ended()
        unsaved = self._unsaved[ns] = _Unsaved(saved_as, checkpoint, given, self._parents.get(ns))
        if metadata.get("source") == "input":
            return saved_as  # needs no row: a run without one begins with its input again
        if self._at_exit:
            return saved_as
        if not self._turn_key or self._turns.get(ns) != self._turn(checkpoint):
            self._due.append((ns, unsaved))
            self._parents[ns], self._turns[ns] = checkpoint["id"], self._turn(checkpoint)
        if not self._turn_key:
            async with self._database.transaction(self._fence.tenant) as connection:
                due = await self.save(connection)
            self.saved(due)
        return saved_as

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        ns, checkpoint_id = _where(config)
        written = self._written.get(ns)
        if written is None or _where(written.config)[1] != checkpoint_id:
            written = self._written[ns] = _Written(_config(self._fence.thread, ns, checkpoint_id or ""), {})
        written.tasks[task_id] = (task_path, _kept(writes))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        ns, _ = _where(config or {})
        edge = _where(before)[1] if before else None
        parameters = (self._fence.thread, ns, edge, edge, limit or 10_000)
        async with self._database.transaction(self._fence.tenant) as connection:
            rows = await (await connection.execute(HISTORY, parameters)).fetchall()
        for row in rows:
            yield self._tuple(ns, row, [])

    async def adelete_thread(self, thread_id: str) -> None:
        async with self._database.transaction(self._fence.tenant) as connection:
            await connection.execute(FORGET, (thread_id,))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Versions that sort as text; fixed width keeps them short."""
        return f"{int(current) + 1 if current else 1:08d}"

    async def begin(self, connection: Connection) -> Position | None:
        """Where the thread stands, read once for the claim. None: nothing was ever saved."""
        row = await (await connection.execute(LATEST, (self._fence.thread, ""))).fetchone()
        self._looked = True
        if row is None:
            return None
        self._found = await self._completed(connection, "", row)
        return Position(row[4], row[5])

    async def save(self, connection: Connection) -> Due:
        """Write the checkpoints of turns that have begun, in the caller's transaction. Raises Fenced."""
        due = tuple(self._due)
        for ns, unsaved in due:
            await self._put(connection, ns, unsaved)
        return due

    def saved(self, due: Due) -> None:
        """The transaction of a `save` was committed. What has become due meanwhile stays so."""
        self._due = [one for one in self._due if all(one is not other for other in due)]

    async def flush(self, connection: Connection) -> None:
        """Write everything that is in memory only, in the caller's transaction. Raises Fenced."""
        await self.save(connection)
        for ns, unsaved in sorted(self._unsaved.items(), key=lambda item: item[0]):
            if unsaved.checkpoint["id"] != self._parents.get(ns):
                await self._put(connection, ns, unsaved)
        for written in self._written.values():
            for task, (path, writes) in written.tasks.items():
                await self._put_writes(connection, written.config, task, path, writes)

    def _forget_ended(self) -> None:
        """Drop what subgraphs left in memory, whose nodes have ended with the superstep of the run's own graph."""
        for kept in (self._unsaved, self._written):
            for ns in [ns for ns in kept if ":" in ns]:
                del kept[ns]

    def interrupts(self) -> tuple[Interrupt, ...]:
        """The graph's own interrupts that the run waited for when this claim began, answered or not."""
        if self._found is None:
            return ()
        writes = self._found.pending_writes or []
        finished = {task for task, channel, _ in writes if channel not in SPECIAL}
        raised = [value for task, channel, value in writes if channel == INTERRUPT and task not in finished]
        return tuple(interrupt for several in raised for interrupt in several)

    def _turn(self, checkpoint: Checkpoint) -> int | None:
        return checkpoint["channel_values"].get(self._turn_key) if self._turn_key else None

    async def _put(self, connection: Connection, ns: str, unsaved: _Unsaved) -> None:
        _, body = self.serde.dumps_typed(unsaved.checkpoint)
        if len(body) > self._limit:
            raise StateTooLarge(_too_large(unsaved.checkpoint, len(body), self._limit))
        parameters = {
            **self._guard(),
            "ns": ns,
            "id": unsaved.checkpoint["id"],
            "parent": unsaved.parent,
            "superstep": unsaved.metadata.get("step", -1),
            "turn": self._turn(unsaved.checkpoint),
            "body": body,
            "metadata": Jsonb(unsaved.metadata, dumps=orjson.dumps),
        }
        put = PUT_LATEST if self._holds_content else PUT
        if await (await connection.execute(put, parameters)).fetchone() is None:
            raise Fenced(str(self._fence.run), self._fence.number)

    async def _put_writes(
        self, connection: Connection, config: RunnableConfig, task: str, path: str, writes: Sequence[tuple[str, Any]]
    ) -> None:
        """What one task wrote; all of it, or nothing where it is too large, and the task runs again."""
        ns, checkpoint_id = _where(config)
        bodies = [self.serde.dumps_typed(value) for _, value in writes]
        if sum(len(body) for _, body in bodies) > self._limit:
            return
        place = {**self._guard(), "ns": ns, "id": checkpoint_id, "task": task, "path": path}
        for nth, ((channel, _), (kind, body)) in enumerate(zip(writes, bodies, strict=True)):
            idx = WRITES_IDX_MAP.get(channel, nth)
            parameters = {**place, "idx": idx, "channel": channel, "type": kind, "body": body}
            if await (await connection.execute(PUT_WRITE, parameters)).fetchone() is None:
                raise Fenced(str(self._fence.run), self._fence.number)

    def _guard(self) -> dict[str, Any]:
        fence = self._fence
        return {**ours(fence), "thread": fence.thread, "tenant": fence.tenant}

    async def _read(self, connection: Connection, ns: str, wanted: str | None) -> CheckpointTuple | None:
        thread = self._fence.thread
        query, parameters = (LATEST, (thread, ns)) if wanted is None else (EXACT, (thread, ns, wanted))
        row = await (await connection.execute(query, parameters)).fetchone()
        return None if row is None else await self._completed(connection, ns, row)

    async def _completed(self, connection: Connection, ns: str, row: Sequence[Any]) -> CheckpointTuple:
        """A row with the interrupts that wait on it."""
        writes = await (await connection.execute(WRITES, (self._fence.thread, ns, row[0]))).fetchall()
        found = self._tuple(ns, row, writes)
        self._parents[ns], self._turns[ns] = row[0], self._turn(found.checkpoint)
        return found

    def _tuple(self, ns: str, row: Sequence[Any], writes: Sequence[Sequence[Any]]) -> CheckpointTuple:
        checkpoint_id, parent, body, metadata = row[:4]
        pending = [(task, channel, self.serde.loads_typed((kind, blob))) for task, channel, kind, blob in writes]
        return CheckpointTuple(
            _config(self._fence.thread, ns, checkpoint_id),
            self.serde.loads_typed(("msgpack", body)),
            metadata,
            _config(self._fence.thread, ns, parent) if parent else None,
            pending,
        )


def _kept(writes: Sequence[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """The writes of a task that another claim may take as done."""
    if any(channel in NOT_KEPT for channel, _ in writes):
        return ()
    return tuple((channel, value) for channel, value in writes if channel != INTERRUPT or not _raised_anew(value))


def _raised_anew(interrupts: Sequence[Interrupt]) -> bool:
    return any(interrupt.id == RAISED_ANEW for interrupt in interrupts)


def _where(config: Mapping[str, Any]) -> tuple[str, str | None]:
    """Namespace and checkpoint id of a config; None: the latest."""
    configurable = config.get("configurable", {})
    return configurable.get("checkpoint_ns", ""), configurable.get("checkpoint_id")


def _config(thread: UUID | None, ns: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": str(thread), "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def _too_large(checkpoint: Checkpoint, size: int, limit: int) -> str:
    values = checkpoint["channel_values"]
    largest = max(values, key=lambda name: len(repr(values[name])), default="")
    return (
        f"The graph's state has {size} bytes, over {limit}. Its largest key is {largest!r}: "
        "record its content as a step and keep the step's seq."
    )
