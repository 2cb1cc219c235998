"""The checkpointer of a run: which checkpoints are kept, and when each is written. A store keeps them.

A graph that counts turns keeps one checkpoint per turn, because a node that runs again reads its calls back from the
journal. The first checkpoint of a turn is due with the next step of the run, and the last position with the release.
Other graphs keep one per superstep. A graph whose state holds content, or has a DeltaChannel, keeps every checkpoint,
and what tasks wrote where a channel is rebuilt from it. All other writes of finished tasks are in memory, and are
written where a slice ends within a superstep.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from secrets import token_hex
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    copy_checkpoint,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot  # pyright: ignore[reportPrivateUsage]
from langgraph.types import Interrupt

from offing.core.checkpoint import StoredCheckpoint, TaskWrite
from offing.core.errors import Fenced
from offing.kernel.channel_history import ChannelWalk
from offing.kernel.checkpoint_store import CheckpointStore

SPECIAL = frozenset({INTERRUPT, RESUME})

RAISED_ANEW = "offing"
"""Id of interrupts that are not kept: whatever a run waits for through its context, its node asks for again."""

NOT_KEPT = frozenset({ERROR, "__error_source_node__"})
"""Errors are not kept: their node runs again, and must find the run as it was before the node."""

COUNTERS = "counters_since_delta_snapshot"
"""In the metadata of a checkpoint: the channels that are rebuilt from writes since their last snapshot."""

PAGE = 50
"""Checkpoints that are read at once when the history is listed."""

WALK = 128
"""Checkpoints that are read at once when a channel is rebuilt."""

ALL = 2_147_483_647

CALLED = ":"
"""In the namespace of a subgraph that a task called. A subgraph with a memory of its own has none."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands according to its latest checkpoint."""

    run: UUID | None
    """The run that wrote it. If it is another than ours, our run has not begun."""
    superstep: int


@dataclass(slots=True, eq=False)
class Unsaved:
    """A checkpoint of this claim."""

    ns: str
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent: str | None
    """Id of the nearest kept checkpoint before it. `None` means that it is the first."""
    turn: int | None = None
    parent_writes: tuple[TaskWrite, ...] = ()
    """What tasks wrote at the parent to channels that are rebuilt from it."""
    delta: tuple[str, ...] = ()
    prepared: Any = None
    ended: tuple[str, ...] = ()
    """Namespaces of subgraphs whose calls ended with its superstep."""
    is_kept: bool = False
    nth: int = 0
    """Position in the order in which this claim made its checkpoints."""

    @property
    def id(self) -> str:
        return self.checkpoint["id"]

    @property
    def root(self) -> str:
        """Of a subgraph's checkpoint: the id of the checkpoint of the run's own graph that called it."""
        return self.metadata.get("parents", {}).get("", "")


Due = tuple[Unsaved, ...]
"""Checkpoints that wait for a transaction."""


class Checkpointer(BaseCheckpointSaver[str]):
    """The checkpointer of one claim. Not shared between runs, so it needs no lock.

    `turn_key` names the state key that counts turns; empty means that there is none. If `at_exit` is true, only where
    the claim ends is written, by `flush`. If `keeps_all` is true, every checkpoint is kept. `keep_latest` limits how
    many checkpoints of each namespace a release leaves; `None` means no limit.
    """

    def __init__(
        self,
        store: CheckpointStore,
        *,
        turn_key: str = "",
        at_exit: bool = False,
        keeps_all: bool = False,
        keep_latest: int | None = None,
    ) -> None:
        super().__init__(serde=store.serde)
        self._store, self._turn_key, self._at_exit = store, turn_key, at_exit
        self._keeps_all, self._keep_latest = keeps_all, keep_latest
        self.forget()

    def forget(self) -> None:
        """Drop what is in memory only, as the loss of a worker does."""
        self._latest: dict[str, Unsaved] = {}
        self._due: list[Unsaved] = []
        self._at_release: list[Unsaved] = []
        """Kept checkpoints of a claim that writes nothing before its release."""
        self._pending: dict[tuple[str, str], dict[tuple[str, int], TaskWrite]] = {}
        """What tasks wrote, by namespace and id of the checkpoint at which they wrote it."""
        self._turns: dict[str, int | None] = {}
        self._calls: dict[str, str] = {}
        """Namespaces of called subgraphs that have something stored, with the root checkpoint of the call."""
        self._count = count()
        self._looked = False
        self._found: StoredCheckpoint | None = None

    # LangGraph's contract

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        ns, wanted = _where(config)
        if (unsaved := self._in_memory(ns, wanted)) is not None:
            return self._tuple_of(unsaved)
        if self._looked and not ns and wanted is None:
            self._looked = False
            return self._tuple(self._found) if self._found else None
        async with self._store.transaction() as session:
            found = await self._store.get(session, ns, wanted)
        if found is None:
            return None
        if wanted is None:
            self._turns[ns] = self._turn(found.checkpoint)
        return self._tuple(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        configurable = (config or {}).get("configurable", {})
        ns, id = configurable.get("checkpoint_ns"), configurable.get("checkpoint_id")
        edge, left = _where(before)[1] if before else None, ALL if limit is None else limit
        mine, edge = self._listed(ns, id, filter or {}, edge)
        for unsaved in mine[:left]:
            yield self._tuple_of(unsaved)
        left, seen = left - len(mine), {(unsaved.ns, unsaved.id) for unsaved in mine}
        while left > 0:
            wanted = min(left + len(seen), PAGE)
            async with self._store.transaction() as session:
                page = await self._store.list(session, ns, id, filter or {}, edge, wanted)
            for found in [one for one in page if (one.ns, one.id) not in seen][:left]:
                yield self._tuple(found)
                left -= 1
            if len(page) < wanted:
                return
            edge = page[-1].id

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        ns, parent = _where(config)
        unsaved = self._new(ns, parent, checkpoint, get_checkpoint_metadata(config, metadata))
        if self._is_kept(unsaved):
            self._keep(unsaved)
        self._latest[ns] = unsaved
        self._pending.pop((ns, parent or ""), None)  # it is in the checkpoint now
        if not ns:
            self._end_calls(unsaved, parent)
        if not (self._turn_key or self._at_exit or metadata.get("source") == "input"):
            await self._save_now()
        return self._config(ns, unsaved.id)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        ns, checkpoint_id = _where(config)
        pending = self._pending.setdefault((ns, checkpoint_id or ""), {})
        for nth, (channel, value) in enumerate(writes):
            write = TaskWrite(task_id, WRITES_IDX_MAP.get(channel, nth), task_path, channel, value)
            if write.idx < 0 or write.key not in pending:
                pending[write.key] = write

    async def adelete_thread(self, thread_id: str) -> None:
        self._check_own(thread_id)
        self.forget()
        async with self._store.transaction() as session:
            await self._store.drop_all(session)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to the one of this claim, which alone may be written."""
        self._check_own(target_thread_id)
        async with self._store.transaction() as session:
            await self._store.copy_from(session, UUID(source_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread_id in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread_id)
            else:
                self._check_own(thread_id)
                await self._save_now()
                async with self._store.transaction() as session:
                    await self._store.prune(session, 1)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._save_now()
        async with self._store.transaction() as session:
            await self._store.drop_runs(session, run_ids)
        gone = set(run_ids)
        self._latest = {ns: one for ns, one in self._latest.items() if one.metadata.get("run_id") not in gone}

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        walk, (ns, _) = ChannelWalk(channels), _where(config)
        target = await self.aget_tuple(config) if channels else None
        parent = _where(target.parent_config)[1] if target is not None and target.parent_config else None
        child = self._unwritten(ns, target.checkpoint["id"]) if target is not None else None
        while walk.open and parent is not None and (above := self._unwritten(ns, parent)) is not None:
            walk.take(above.checkpoint, child.parent_writes if child else ())
            parent, child = above.parent, above
        await self._walk_stored(walk, ns, parent, child.parent_writes if child else ())
        return walk.found()

    def get_next_version(self, current: str | None, channel: None) -> str:
        """A version that sorts as text. Where values are stored by their version, branches must not share one."""
        number = f"{int(str(current).split('.')[0]) + 1 if current else 1:08d}"
        return f"{number}.{token_hex(4)}" if self._keeps_all else number

    # What a slice and its recorder ask

    async def begin(self, connection: Any) -> Position | None:
        """Where the thread stands, read once for the claim. `None` means that nothing was ever saved."""
        if self._keeps_all:
            self._calls = dict(await self._store.calls(connection))
        return self.begin_after(await self._store.get(connection, "", None))

    def begin_after(self, found: StoredCheckpoint | None) -> Position | None:
        """Begin where the thread stands. `None` means that nothing was ever saved."""
        self._found, self._looked = found, True
        if found is None:
            return None
        self._turns[""] = self._turn(found.checkpoint)
        return Position(found.of_run, found.superstep)

    async def save(self, connection: Any) -> Due:
        """Write the checkpoints that are due, in the caller's transaction. Raises Fenced."""
        due = tuple(self._due)
        for unsaved in due:
            await self._put(connection, unsaved)
        return due

    def saved(self, due: Due) -> None:
        """The transaction of a `save` was committed. What has become due meanwhile stays so."""
        self._due[:] = [one for one in self._due if all(one is not other for other in due)]

    async def flush(self, connection: Any) -> None:
        """Write everything that is in memory only, in the caller's transaction. Raises Fenced."""
        await self.save(connection)
        for unsaved in self._at_release:
            await self._put(connection, unsaved)
        for unsaved in sorted(self._latest.values(), key=lambda one: one.ns):
            if not unsaved.is_kept:
                await self._store.put(connection, self._prepared(unsaved))
        for (ns, id), writes in self._pending.items():
            if (latest := self._latest.get(ns)) is None or latest.is_kept or latest.id == id:
                for task in dict.fromkeys(write.task_id for write in writes.values()):
                    mine = [write for write in writes.values() if write.task_id == task]
                    if kept := _kept(mine):
                        await self._store.put_writes(connection, ns, id, kept)
        if self._keep_latest is not None:
            await self._store.prune(connection, self._keep_latest)

    async def flush_now(self) -> None:
        """Write everything that is in memory only, in a transaction of its own. Raises Fenced."""
        async with self._store.transaction() as session:
            await self.flush(session)

    def interrupts(self) -> tuple[Interrupt, ...]:
        """The graph's own interrupts that the run waited for when this claim began, answered or not."""
        writes = self._found.writes if self._found else ()
        finished = {write.task_id for write in writes if write.channel not in SPECIAL}
        raised = [w.value for w in writes if w.channel == INTERRUPT and w.task_id not in finished]
        return tuple(interrupt for several in raised for interrupt in several)

    # Its rule

    def _new(self, ns: str, parent: str | None, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> Unsaved:
        counted = cast(Mapping[str, Any], metadata.get(COUNTERS) or {})
        delta = tuple(name for name in counted if name in checkpoint["channel_versions"])
        pending = self._pending.get((ns, parent or ""), {}).values()
        writes = tuple(write for write in pending if write.channel in delta)
        above = self._latest.get(ns)
        if above is not None and above.id == parent and not above.is_kept:
            if writes:  # they are stored at it
                self._keep(above)
            else:
                parent = above.parent
        return Unsaved(ns, checkpoint, metadata, parent, self._turn(checkpoint), writes, delta, nth=next(self._count))

    def _keep(self, unsaved: Unsaved) -> None:
        if not self._at_exit:
            unsaved.prepared = self._prepared(unsaved)
        unsaved.is_kept = True
        (self._at_release if self._at_exit else self._due).append(unsaved)
        self._turns[unsaved.ns] = unsaved.turn
        if CALLED in unsaved.ns:
            self._calls[unsaved.ns] = unsaved.root

    def _is_kept(self, unsaved: Unsaved) -> bool:
        """Whether a checkpoint is kept at all, beside the position where a slice ends."""
        values, source = unsaved.checkpoint["channel_values"], unsaved.metadata.get("source")
        if self._keeps_all or unsaved.delta or any(isinstance(value, DeltaSnapshot) for value in values.values()):
            return True
        if self._at_exit or source == "input":
            return False  # an input needs no row: a run without one begins with it again
        if source in ("update", "fork") or not self._turn_key:
            return True
        return self._turns.get(unsaved.ns) != unsaved.turn

    def _turn(self, checkpoint: Mapping[str, Any]) -> int | None:
        return checkpoint["channel_values"].get(self._turn_key) if self._turn_key else None

    def _end_calls(self, unsaved: Unsaved, parent: str | None) -> None:
        """Drop what subgraphs left, whose nodes have ended with the superstep of the run's own graph."""
        ended = {ns for ns, one in self._latest.items() if CALLED in ns and one.root == parent}
        self._latest = {ns: one for ns, one in self._latest.items() if ns not in ended}
        self._pending = {where: writes for where, writes in self._pending.items() if where[0] not in ended}
        for waiting in (self._due, self._at_release):
            waiting[:] = [one for one in waiting if one.ns not in ended]
        if self._keeps_all:
            unsaved.ended = tuple(sorted(ns for ns, root in self._calls.items() if root == parent))
            self._calls = {ns: root for ns, root in self._calls.items() if root != parent}

    async def _save_now(self) -> None:
        async with self._store.transaction() as session:
            due = await self.save(session)
        self.saved(due)

    async def _put(self, session: Any, unsaved: Unsaved) -> None:
        unsaved.prepared = unsaved.prepared or self._prepared(unsaved)
        if unsaved.ended:
            await self._store.end_calls(session, unsaved.ended)
        await self._store.put(session, unsaved.prepared)

    def _prepared(self, unsaved: Unsaved) -> Any:
        return self._store.prepare(
            unsaved.ns,
            unsaved.checkpoint,
            unsaved.metadata,
            parent=unsaved.parent,
            turn=unsaved.turn,
            delta=unsaved.delta,
            parent_writes=unsaved.parent_writes,
        )

    # Reading what is in memory and what is stored as one

    def _waiting(self) -> list[Unsaved]:
        """The checkpoints that are not written yet, in the order in which they were made."""
        passing = [one for one in self._latest.values() if not one.is_kept]
        return sorted([*self._due, *self._at_release, *passing], key=lambda one: one.nth)

    def _in_memory(self, ns: str, id: str | None) -> Unsaved | None:
        """The latest of a namespace where `id` is `None`."""
        latest = self._latest.get(ns)
        if id is None or (latest is not None and latest.id == id):
            return latest
        return self._unwritten(ns, id)

    def _unwritten(self, ns: str, id: str | None) -> Unsaved | None:
        return next((one for one in self._waiting() if one.ns == ns and one.id == id), None)

    def _listed(
        self, ns: str | None, id: str | None, metadata: Mapping[str, Any], edge: str | None
    ) -> tuple[list[Unsaved], str | None]:
        """What of the memory belongs to a listing, the newest first, and the edge that is left for the store."""
        waiting = self._waiting()
        if edge is not None:
            at = next((nth for nth, one in enumerate(waiting) if one.id == edge), None)
            waiting, edge = ([], edge) if at is None else (waiting[:at], None)
        chosen = [
            one for one in waiting if ns in (None, one.ns) and id in (None, one.id) and _matches(one.metadata, metadata)
        ]
        return chosen[::-1], edge

    async def _walk_stored(self, walk: ChannelWalk, ns: str, id: str | None, unwritten: Sequence[TaskWrite]) -> None:
        """From this checkpoint on, at which `unwritten` belongs to what tasks wrote."""
        while id is not None and walk.open:
            async with self._store.transaction() as session:
                page = await self._store.ancestors(session, ns, id, walk.open, WALK)
            for found in page:
                walk.take(found.checkpoint, [*found.writes, *unwritten])
                unwritten = ()
            id = page[-1].parent if page else None

    def _tuple_of(self, unsaved: Unsaved) -> CheckpointTuple:
        parent = self._config(unsaved.ns, unsaved.parent) if unsaved.parent else None
        writes = self._pending_at(unsaved.ns, unsaved.id)
        checkpoint = copy_checkpoint(unsaved.checkpoint)
        return CheckpointTuple(self._config(unsaved.ns, unsaved.id), checkpoint, unsaved.metadata, parent, writes)

    def _tuple(self, found: StoredCheckpoint) -> CheckpointTuple:
        parent = self._config(found.ns, found.parent) if found.parent else None
        writes = self._pending_at(found.ns, found.id, found.writes)
        checkpoint, metadata = cast(Checkpoint, found.checkpoint), cast(CheckpointMetadata, found.metadata)
        return CheckpointTuple(self._config(found.ns, found.id), checkpoint, metadata, parent, writes)

    def _pending_at(self, ns: str, id: str, stored: Sequence[TaskWrite] = ()) -> list[tuple[str, str, Any]]:
        merged = {write.key: write for write in stored}
        for key, write in self._pending.get((ns, id), {}).items():
            if write.idx < 0 or key not in merged:
                merged[key] = write
        return [(w.task_id, w.channel, w.value) for w in sorted(merged.values(), key=lambda write: write.order)]

    def _config(self, ns: str, id: str) -> RunnableConfig:
        return {"configurable": {"thread_id": self._store.thread, "checkpoint_ns": ns, "checkpoint_id": id}}

    def _check_own(self, thread_id: str) -> None:
        if thread_id != self._store.thread:
            raise Fenced(f"A claim changes the checkpoints of its own thread, {self._store.thread}, and of no other.")


def _kept(writes: Sequence[TaskWrite]) -> tuple[TaskWrite, ...]:
    """The writes of a task that another claim may take as done."""
    if any(write.channel in NOT_KEPT for write in writes):
        return ()
    return tuple(write for write in writes if write.channel != INTERRUPT or not _raised_anew(write.value))


def _raised_anew(interrupts: Any) -> bool:
    return any(getattr(interrupt, "id", None) == RAISED_ANEW for interrupt in interrupts)


def _where(config: Mapping[str, Any]) -> tuple[str, str | None]:
    """Namespace and checkpoint id of a config. `None` stands for the latest."""
    configurable = config.get("configurable", {})
    return configurable.get("checkpoint_ns", ""), configurable.get("checkpoint_id")


def _matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(metadata.get(name) == value for name, value in wanted.items())
