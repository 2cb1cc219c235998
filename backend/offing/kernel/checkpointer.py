"""The checkpointer of a run: it decides which checkpoints are kept and when each is written.

A graph with a turn counter keeps one checkpoint per turn, because a node that runs again reads its
calls from the journal. The first checkpoint of a turn is written with the next step of the run, and
the last position with the release. Other graphs keep one checkpoint per superstep and write it
before the next superstep, with two exceptions: the one that contains only the input is written with
the next one, or earlier for a client that reads it, and that of the last superstep with the
release. A graph whose state holds content or that has a DeltaChannel keeps every checkpoint and the
task writes from which a channel is rebuilt. All other writes of finished tasks stay in memory. They
are written if a slice ends within a superstep.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from secrets import token_hex
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    copy_checkpoint,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, TASKS
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot  # pyright: ignore[reportPrivateUsage]
from langgraph.types import Interrupt

from offing.core.checkpoint import StoredCheckpoint, TaskWrite
from offing.core.errors import LeaseLostError
from offing.kernel.blocking_checkpointer import BlockingCheckpointer
from offing.kernel.channel_history import ChannelHistoryCollector
from offing.kernel.checkpoint_store import CheckpointStore
from offing.kernel.subgraph_calls import SubgraphCalls

INTERRUPT_CHANNELS = frozenset({INTERRUPT, RESUME})

TRANSIENT_INTERRUPT_ID = "offing"
"""Id of interrupts that are not stored.

A node that runs again raises them again if its run still has to wait.
"""

UNSAVED_CHANNELS = frozenset({ERROR, "__error_source_node__"})
"""Channels that are not stored. A node that failed runs again and must find the run unchanged."""

DELTA_COUNTERS_KEY = "counters_since_delta_snapshot"
"""Metadata key of a checkpoint: channels that were rebuilt from writes since their last snapshot."""

HISTORY_PAGE_SIZE = 50
"""Number of checkpoints per read when the history is listed."""

ANCESTORS_PAGE_SIZE = 128
"""Number of checkpoints per read when a channel is rebuilt."""

NO_LIMIT = 2_147_483_647

CALL_MARKER = ":"
"""Marker in the namespace of a subgraph that a task called.

The namespace of a stateful subgraph has none.
"""


@dataclass(frozen=True, slots=True)
class RunPosition:
    """Position of a run according to its latest checkpoint."""

    run_id: UUID | None
    """The run that wrote the checkpoint. If it is another run, this run has not begun."""
    superstep: int


@dataclass(slots=True, eq=False)
class UnsavedCheckpoint:
    """A checkpoint of this claim."""

    ns: str
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_id: str | None
    """Id of the nearest kept checkpoint before this one. `None` means that this is the first."""
    turn: int | None = None
    parent_writes: tuple[TaskWrite, ...] = ()
    """Task writes at the parent to channels that are rebuilt from writes."""
    delta_channels: tuple[str, ...] = ()
    prepared: Any = None
    ended_namespaces: tuple[str, ...] = ()
    """Namespaces of subgraphs whose calls ended with the superstep of this checkpoint."""
    is_retained: bool = False
    index: int = 0
    """Index in the order in which this claim made its checkpoints."""

    @property
    def id(self) -> str:
        return self.checkpoint["id"]

    @property
    def root_id(self) -> str:
        """For a checkpoint of a subgraph, the id of the root checkpoint from which the subgraph was called."""
        return self.metadata.get("parents", {}).get("", "")


DueCheckpoints = tuple[UnsavedCheckpoint, ...]
"""Checkpoints that will be written by the next transaction."""


class Checkpointer(BlockingCheckpointer):
    """The checkpointer of one claim. It is not shared between runs, so it needs no lock.

    `turn_key` names the state key that counts turns. Empty means that there is none. If
    `writes_at_exit` is true, only the last position of the claim is written, by `flush`. If `keeps_all`
    is true, every checkpoint is kept. `keep_latest` limits how many checkpoints of each namespace are
    kept at a release. `None` means no limit.
    """

    def __init__(
        self,
        store: CheckpointStore,
        *,
        turn_key: str = "",
        writes_at_exit: bool = False,
        keeps_all: bool = False,
        keep_latest: int | None = None,
    ) -> None:
        super().__init__(serde=store.serde)
        self._store, self._turn_key, self._writes_at_exit = store, turn_key, writes_at_exit
        self._keeps_all, self._keep_latest = keeps_all, keep_latest
        self._triggers: frozenset[str] | None = None
        """Channels that trigger nodes of the run's own graph. `None` means that they are not known."""
        self._before_commit: Callable[[], Awaitable[None]] | None = None
        self.discard_memory()

    def discard_memory(self) -> None:
        """Discard everything that is only in memory, as a crash of the worker does."""
        self._latest: dict[str, UnsavedCheckpoint] = {}
        self._due: list[UnsavedCheckpoint] = []
        self._at_release: list[UnsavedCheckpoint] = []
        """Kept checkpoints of a claim that writes nothing before its release."""
        self._pending: dict[tuple[str, str], dict[tuple[str, int], TaskWrite]] = {}
        """Task writes, by namespace and id of their checkpoint."""
        self._turns: dict[str, int | None] = {}
        self._calls: dict[str, str] = {}
        """Namespaces of called subgraphs with stored checkpoints, and the root checkpoint of each call."""
        self._subgraph_calls = SubgraphCalls()
        self._count = count()
        self._has_unread_position = False
        self._stored: StoredCheckpoint | None = None

    # LangGraph's interface

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        ns, checkpoint_id = _parse_config(config)
        saved = await self._find_tuple(ns, checkpoint_id)
        if checkpoint_id is None:
            self._subgraph_calls.set_position(ns, await self._list_position_ids(ns, saved))
            if saved is not None:
                self._subgraph_calls.begin_unstarted_call(config, saved.metadata)
        return saved

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
        edge, remaining = _parse_config(before)[1] if before else None, NO_LIMIT if limit is None else limit
        mine, edge = self._list_in_memory(ns, id, filter or {}, edge)
        for unsaved in mine[:remaining]:
            yield self._tuple_from_unsaved(unsaved)
        remaining, listed = remaining - len(mine), {(unsaved.ns, unsaved.id) for unsaved in mine}
        while remaining > 0:
            page_limit = min(remaining + len(listed), HISTORY_PAGE_SIZE)
            async with self._store.transaction() as session:
                page = await self._store.list_checkpoints(session, ns, id, filter or {}, edge, page_limit)
            for stored in [one for one in page if (one.ns, one.id) not in listed][:remaining]:
                yield self._tuple_from_stored(stored)
                remaining -= 1
            if len(page) < page_limit:
                return
            edge = page[-1].id

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        ns, parent = _parse_config(config)
        unsaved = self._build_unsaved(ns, parent, checkpoint, get_checkpoint_metadata(config, metadata))
        can_wait = self._can_wait(unsaved)
        if self._is_retained(unsaved):
            self._mark_retained(unsaved)
        self._latest[ns] = unsaved
        self._pending.pop((ns, parent or ""), None)  # the checkpoint contains them now
        if not ns:
            self._end_subgraph_calls(unsaved, parent)
        if not can_wait:
            await self._save_now()
        return self._build_config(ns, unsaved.id)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        ns, checkpoint_id = _parse_config(config)
        pending = self._pending.setdefault((ns, checkpoint_id or ""), {})
        for nth, (channel, value) in enumerate(writes):
            write = TaskWrite(task_id, WRITES_IDX_MAP.get(channel, nth), task_path, channel, value)
            if write.idx < 0 or write.key not in pending:
                pending[write.key] = write

    async def adelete_thread(self, thread_id: str) -> None:
        self._check_own_thread(thread_id)
        self.discard_memory()
        async with self._store.transaction() as session:
            await self._store.delete_all(session)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to the thread of this claim. No other thread may be the target."""
        self._check_own_thread(target_thread_id)
        async with self._store.transaction() as session:
            await self._store.copy_from_thread(session, UUID(source_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread_id in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread_id)
            else:
                self._check_own_thread(thread_id)
                await self._save_now()
                async with self._store.transaction() as session:
                    await self._store.prune(session, 1)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._save_now()
        async with self._store.transaction() as session:
            await self._store.delete_runs(session, run_ids)
        deleted_runs = set(run_ids)
        self._latest = {ns: one for ns, one in self._latest.items() if one.metadata.get("run_id") not in deleted_runs}

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        walk, (ns, _) = ChannelHistoryCollector(channels), _parse_config(config)
        target = await self.aget_tuple(config) if channels else None
        parent = _parse_config(target.parent_config)[1] if target is not None and target.parent_config else None
        child = self._find_unwritten(ns, target.checkpoint["id"]) if target is not None else None
        while walk.open_channels and parent is not None and (above := self._find_unwritten(ns, parent)) is not None:
            walk.add_checkpoint(above.checkpoint, child.parent_writes if child else ())
            parent, child = above.parent_id, above
        await self._walk_stored(walk, ns, parent, child.parent_writes if child else ())
        return walk.build_histories()

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version that sorts as text.

        If values are stored by their version, parallel branches get different versions.
        """
        number = f"{int(str(current).split('.')[0]) + 1 if current else 1:08d}"
        return f"{number}.{token_hex(4)}" if self._keeps_all else number

    # Interface for the slice and the journal

    async def load_position(self, connection: Any) -> RunPosition | None:
        """Read the position of the thread, once per claim. `None` means that nothing was saved yet."""
        await self._load_calls(connection)
        return self.set_position(await self._store.find_checkpoint(connection, "", None))

    async def _load_calls(self, connection: Any) -> None:
        if self._keeps_all:
            self._calls = dict(await self._store.get_call_roots(connection))

    def set_triggers(self, channels: Iterable[str]) -> None:
        """Set the channels that trigger nodes of the run's own graph.

        A superstep that updates none of them is the last one, so its checkpoint is written with the release.
        """
        self._triggers = frozenset(channels)

    def set_before_commit(self, before_commit: Callable[[], Awaitable[None]]) -> None:
        """Set what is awaited before checkpoints are committed, such as that clients have the events of a superstep."""
        self._before_commit = before_commit

    def set_position(self, stored: StoredCheckpoint | None) -> RunPosition | None:
        """Use a stored checkpoint as the position of the thread. `None` means that nothing was saved yet."""
        self._stored, self._has_unread_position = stored, True
        if stored is None:
            return None
        self._turns[""] = self._read_turn(stored.checkpoint)
        return RunPosition(stored.preceding_run_id, stored.superstep)

    async def save_due(self, connection: Any) -> DueCheckpoints:
        """Write the checkpoints that are due, in the caller's transaction. Raises LeaseLostError."""
        due = tuple(self._due)
        await self._put_due(connection, due)
        return due

    async def _put_due(self, connection: Any, due: DueCheckpoints) -> None:
        for unsaved in due:
            await self._put_checkpoint(connection, unsaved)
        if due and self._before_commit is not None:
            await self._before_commit()

    def confirm_saved(self, due: DueCheckpoints) -> None:
        """Mark the checkpoints of a committed `save_due` as written.

        Checkpoints that became due later stay due.
        """
        self._due[:] = [one for one in self._due if all(one is not other for other in due)]

    async def flush(self, connection: Any) -> None:
        """Write everything that is only in memory, in the caller's transaction. Raises LeaseLostError."""
        await self.save_due(connection)
        for unsaved in self._at_release:
            await self._put_checkpoint(connection, unsaved)
        for unsaved in sorted(self._latest.values(), key=lambda one: one.ns):
            if not unsaved.is_retained:
                await self._store.put_checkpoint(connection, self._prepare(unsaved))
        for (ns, id), writes in self._pending.items():
            if (latest := self._latest.get(ns)) is None or latest.is_retained or latest.id == id:
                for task in dict.fromkeys(write.task_id for write in writes.values()):
                    mine = [write for write in writes.values() if write.task_id == task]
                    if saved_writes := _select_saved_writes(mine):
                        await self._store.put_writes(connection, ns, id, saved_writes)
        if self._keep_latest is not None:
            await self._store.prune(connection, self._keep_latest)

    async def flush_now(self) -> None:
        """Write everything that is only in memory, in a new transaction. Raises LeaseLostError."""
        async with self._store.transaction() as session:
            await self.flush(session)

    def pending_interrupts(self) -> tuple[Interrupt, ...]:
        """Return the graph's own interrupts that were pending when this claim began.

        They may have a response already.
        """
        writes = self._stored.writes if self._stored else ()
        finished = {write.task_id for write in writes if write.channel not in INTERRUPT_CHANNELS}
        raised = [w.value for w in writes if w.channel == INTERRUPT and w.task_id not in finished]
        return tuple(interrupt for several in raised for interrupt in several)

    # Which checkpoints are kept

    def _build_unsaved(
        self, ns: str, parent: str | None, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> UnsavedCheckpoint:
        counted = cast(Mapping[str, Any], metadata.get(DELTA_COUNTERS_KEY) or {})
        delta = tuple(name for name in counted if name in checkpoint["channel_versions"])
        pending = self._pending.get((ns, parent or ""), {}).values()
        writes = tuple(write for write in pending if write.channel in delta)
        above = self._latest.get(ns)
        if above is not None and above.id == parent and not above.is_retained:
            if writes:  # the writes are stored with the parent
                self._mark_retained(above)
            else:
                parent = above.parent_id
        return UnsavedCheckpoint(
            ns, checkpoint, metadata, parent, self._read_turn(checkpoint), writes, delta, index=next(self._count)
        )

    def _mark_retained(self, unsaved: UnsavedCheckpoint) -> None:
        if not self._writes_at_exit:
            unsaved.prepared = self._prepare(unsaved)
        unsaved.is_retained = True
        (self._at_release if self._writes_at_exit else self._due).append(unsaved)
        self._turns[unsaved.ns] = unsaved.turn
        if CALL_MARKER in unsaved.ns:
            self._calls[unsaved.ns] = unsaved.root_id

    def _is_retained(self, unsaved: UnsavedCheckpoint) -> bool:
        """Return whether a checkpoint is kept. The position where a slice ends is written in addition."""
        values, source = unsaved.checkpoint["channel_values"], unsaved.metadata.get("source")
        if (
            self._keeps_all
            or unsaved.delta_channels
            or any(isinstance(value, DeltaSnapshot) for value in values.values())
        ):
            return True
        if self._writes_at_exit or source == "input":
            return False  # an input needs no row: a run without a checkpoint starts with its input again
        if source in ("update", "fork") or not self._turn_key:
            return True
        return self._turns.get(unsaved.ns) != unsaved.turn

    def _can_wait(self, unsaved: UnsavedCheckpoint) -> bool:
        """Return whether a checkpoint may be written with a later transaction. `unsaved` is not the latest one yet."""
        if self._turn_key or self._writes_at_exit or unsaved.metadata.get("source") == "input":
            return True
        above = self._latest.get(unsaved.ns)
        contains_only_input = above is not None and above.metadata.get("source") == "input"
        return contains_only_input or self._is_last(unsaved)

    def _is_last(self, unsaved: UnsavedCheckpoint) -> bool:
        """Return whether the run's own graph ends with this checkpoint, because it triggers no node."""
        updated = unsaved.checkpoint.get("updated_channels")
        return (
            not unsaved.ns
            and self._triggers is not None
            and updated is not None
            and TASKS not in updated
            and self._triggers.isdisjoint(updated)
        )

    def _read_turn(self, checkpoint: Mapping[str, Any]) -> int | None:
        return checkpoint["channel_values"].get(self._turn_key) if self._turn_key else None

    def _end_subgraph_calls(self, unsaved: UnsavedCheckpoint, parent: str | None) -> None:
        """Delete the checkpoints of subgraphs whose nodes ended with this superstep of the run's own graph."""
        ended = {ns for ns, one in self._latest.items() if CALL_MARKER in ns and one.root_id == parent}
        self._latest = {ns: one for ns, one in self._latest.items() if ns not in ended}
        self._pending = {where: writes for where, writes in self._pending.items() if where[0] not in ended}
        for waiting in (self._due, self._at_release):
            waiting[:] = [one for one in waiting if one.ns not in ended]
        if self._keeps_all:
            unsaved.ended_namespaces = tuple(sorted(ns for ns, root in self._calls.items() if root == parent))
            self._calls = {ns: root for ns, root in self._calls.items() if root != parent}

    async def _save_now(self) -> None:
        async with self._store.transaction() as session:
            due = await self.save_due(session)
        self.confirm_saved(due)

    async def _put_checkpoint(self, session: Any, unsaved: UnsavedCheckpoint) -> None:
        unsaved.prepared = unsaved.prepared or self._prepare(unsaved)
        if unsaved.ended_namespaces:
            await self._store.delete_namespaces(session, unsaved.ended_namespaces)
        await self._store.put_checkpoint(session, unsaved.prepared)

    def _prepare(self, unsaved: UnsavedCheckpoint) -> Any:
        return self._store.prepare(
            unsaved.ns,
            unsaved.checkpoint,
            unsaved.metadata,
            parent_id=unsaved.parent_id,
            turn=unsaved.turn,
            delta_channels=unsaved.delta_channels,
            parent_writes=unsaved.parent_writes,
        )

    # Combined reads of memory and store

    async def _find_tuple(self, ns: str, checkpoint_id: str | None) -> CheckpointTuple | None:
        """Return a checkpoint of a namespace. If `checkpoint_id` is `None`, return its latest."""
        if (unsaved := self._find_in_memory(ns, checkpoint_id)) is not None:
            return self._tuple_from_unsaved(unsaved)
        if self._has_unread_position and not ns and checkpoint_id is None:
            self._has_unread_position = False
            return self._tuple_from_stored(self._stored) if self._stored else None
        async with self._store.transaction() as session:
            stored = await self._store.find_checkpoint(session, ns, checkpoint_id)
        if stored is None:
            return None
        if checkpoint_id is None:
            self._turns[ns] = self._read_turn(stored.checkpoint)
        return self._tuple_from_stored(stored)

    async def _list_position_ids(self, ns: str, saved: CheckpointTuple | None) -> list[str]:
        """Return the ids of a checkpoint and of the earlier ones that differ from it only by updates of the state."""
        ids = list[str]()
        while saved is not None:
            ids.append(saved.checkpoint["id"])
            parent = saved.parent_config if saved.metadata.get("source") == "update" else None
            saved = await self._find_tuple(ns, _parse_config(parent)[1]) if parent else None
        return ids

    def _list_unwritten(self) -> list[UnsavedCheckpoint]:
        """Return the checkpoints that are not written yet, oldest first."""
        passing = [one for one in self._latest.values() if not one.is_retained]
        return sorted([*self._due, *self._at_release, *passing], key=lambda one: one.index)

    def _find_in_memory(self, ns: str, id: str | None) -> UnsavedCheckpoint | None:
        """Return a checkpoint in memory. If `id` is `None`, return the latest of the namespace."""
        latest = self._latest.get(ns)
        if id is None or (latest is not None and latest.id == id):
            return latest
        return self._find_unwritten(ns, id)

    def _find_unwritten(self, ns: str, id: str | None) -> UnsavedCheckpoint | None:
        return next((one for one in self._list_unwritten() if one.ns == ns and one.id == id), None)

    def _list_in_memory(
        self, ns: str | None, id: str | None, metadata: Mapping[str, Any], before_id: str | None
    ) -> tuple[list[UnsavedCheckpoint], str | None]:
        """Return the checkpoints in memory that match a listing, newest first.

        The second value is the id before which the listing continues in the store. `None` means that the
        listing starts with the newest stored checkpoint.
        """
        waiting = self._list_unwritten()
        if before_id is not None:
            at = next((nth for nth, one in enumerate(waiting) if one.id == before_id), None)
            waiting, before_id = ([], before_id) if at is None else (waiting[:at], None)
        chosen = [
            one for one in waiting if ns in (None, one.ns) and id in (None, one.id) and _matches(one.metadata, metadata)
        ]
        return chosen[::-1], before_id

    async def _walk_stored(
        self, walk: ChannelHistoryCollector, ns: str, id: str | None, unwritten: Sequence[TaskWrite]
    ) -> None:
        """Add stored ancestors, starting with the checkpoint `id`.

        `unwritten` are task writes at that checkpoint that are not stored yet.
        """
        while id is not None and walk.open_channels:
            async with self._store.transaction() as session:
                page = await self._store.list_ancestors(session, ns, id, walk.open_channels, ANCESTORS_PAGE_SIZE)
            for stored in page:
                walk.add_checkpoint(stored.checkpoint, [*stored.writes, *unwritten])
                unwritten = ()
            id = page[-1].parent_id if page else None

    def _tuple_from_unsaved(self, unsaved: UnsavedCheckpoint) -> CheckpointTuple:
        parent = self._build_config(unsaved.ns, unsaved.parent_id) if unsaved.parent_id else None
        writes = self._merge_pending_writes(unsaved.ns, unsaved.id)
        checkpoint = copy_checkpoint(unsaved.checkpoint)
        return CheckpointTuple(self._build_config(unsaved.ns, unsaved.id), checkpoint, unsaved.metadata, parent, writes)

    def _tuple_from_stored(self, stored: StoredCheckpoint) -> CheckpointTuple:
        parent = self._build_config(stored.ns, stored.parent_id) if stored.parent_id else None
        writes = self._merge_pending_writes(stored.ns, stored.id, stored.writes)
        checkpoint, metadata = cast(Checkpoint, stored.checkpoint), cast(CheckpointMetadata, stored.metadata)
        return CheckpointTuple(self._build_config(stored.ns, stored.id), checkpoint, metadata, parent, writes)

    def _merge_pending_writes(self, ns: str, id: str, stored: Sequence[TaskWrite] = ()) -> list[tuple[str, str, Any]]:
        merged = {write.key: write for write in stored}
        for key, write in self._pending.get((ns, id), {}).items():
            if write.idx < 0 or key not in merged:
                merged[key] = write
        return [(w.task_id, w.channel, w.value) for w in sorted(merged.values(), key=lambda write: write.sort_key)]

    def _build_config(self, ns: str, id: str) -> RunnableConfig:
        return {"configurable": {"thread_id": self._store.thread, "checkpoint_ns": ns, "checkpoint_id": id}}

    def _check_own_thread(self, thread_id: str) -> None:
        if thread_id != self._store.thread:
            raise LeaseLostError(f"A claim can change only the checkpoints of its own thread, {self._store.thread}.")


def _select_saved_writes(writes: Sequence[TaskWrite]) -> tuple[TaskWrite, ...]:
    """Return the writes of a task that a later claim may reuse."""
    if any(write.channel in UNSAVED_CHANNELS for write in writes):
        return ()
    return tuple(write for write in writes if write.channel != INTERRUPT or not _are_transient(write.value))


def _are_transient(interrupts: Any) -> bool:
    return any(getattr(interrupt, "id", None) == TRANSIENT_INTERRUPT_ID for interrupt in interrupts)


def _parse_config(config: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the namespace and checkpoint id of a config. `None` means the latest checkpoint."""
    configurable = config.get("configurable", {})
    return configurable.get("checkpoint_ns", ""), configurable.get("checkpoint_id")


def _matches(metadata: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return all(metadata.get(name) == value for name, value in expected.items())
