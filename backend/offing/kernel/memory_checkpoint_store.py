"""Checkpoints of one thread in memory, for simulated runs and tests. Each is stored completely."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from offing.core.checkpoint import StoredCheckpoint, TaskWrite

CheckpointKey = tuple[str, str]
"""Namespace and id of a checkpoint."""


@dataclass(frozen=True, slots=True)
class _CheckpointRow:
    ns: str
    id: str
    parent_id: str | None
    body: tuple[str, bytes]
    metadata: Mapping[str, Any]
    delta_channels: tuple[str, ...]
    parent_writes: tuple[TaskWrite, ...]


class MemoryCheckpointStore:
    """Checkpoints of one thread in memory.

    `open_thread` returns the checkpoints of another thread, from which they can be copied. `None` means
    that there is no other thread.
    """

    def __init__(
        self,
        serde: SerializerProtocol,
        thread: str = "run",
        open_thread: "Callable[[UUID], MemoryCheckpointStore] | None" = None,
    ) -> None:
        self.serde, self.thread, self._open_thread = serde, thread, open_thread
        self._rows: dict[CheckpointKey, _CheckpointRow] = {}
        """In the order of writing."""
        self._writes: dict[CheckpointKey, dict[tuple[str, int], TaskWrite]] = {}

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        yield None

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
    ) -> _CheckpointRow:
        body = self.serde.dumps_typed(checkpoint)
        return _CheckpointRow(
            ns, checkpoint["id"], parent_id, body, dict(metadata), tuple(delta_channels), tuple(parent_writes)
        )

    async def put_checkpoint(self, session: Any, prepared: _CheckpointRow) -> None:
        self._rows[prepared.ns, prepared.id] = prepared
        if prepared.parent_id is not None:
            self._add_writes((prepared.ns, prepared.parent_id), prepared.parent_writes)

    async def put_writes(self, session: Any, ns: str, checkpoint_id: str, writes: Sequence[TaskWrite]) -> None:
        self._add_writes((ns, checkpoint_id), writes)

    async def delete_namespaces(self, session: Any, namespaces: Sequence[str]) -> None:
        self._retain(key for key in self._rows if key[0] not in namespaces)

    async def get_call_roots(self, session: Any) -> Mapping[str, str]:
        called = [row for row in self._rows.values() if ":" in row.ns]
        return {row.ns: row.metadata.get("parents", {}).get("", "") for row in called}

    async def find_checkpoint(self, session: Any, ns: str, checkpoint_id: str | None) -> StoredCheckpoint | None:
        return self.find_in_memory(ns, checkpoint_id)

    def find_in_memory(self, ns: str, checkpoint_id: str | None = None) -> StoredCheckpoint | None:
        """Return a checkpoint, or the latest of a namespace. `None` means that there is none."""
        matches = [row for row in self._rows.values() if row.ns == ns and checkpoint_id in (None, row.id)]
        return self._build_stored(matches[-1]) if matches else None

    async def list_checkpoints(
        self,
        session: Any,
        ns: str | None,
        checkpoint_id: str | None,
        metadata: Mapping[str, Any],
        before_id: str | None,
        limit: int,
    ) -> Sequence[StoredCheckpoint]:
        rows = list(self._rows.values())
        if before_id is not None:
            edge = next((nth for nth, row in enumerate(rows) if row.id == before_id), None)
            rows = [row for row in rows if row.id < before_id] if edge is None else rows[:edge]
        matches = [
            row
            for row in reversed(rows)
            if ns in (None, row.ns)
            and checkpoint_id in (None, row.id)
            and all(row.metadata.get(name) == value for name, value in metadata.items())
        ]
        return [self._build_stored(row) for row in matches[:limit]]

    async def list_ancestors(
        self, session: Any, ns: str, checkpoint_id: str, channels: Sequence[str], limit: int
    ) -> Sequence[StoredCheckpoint]:
        ancestors, at = list[StoredCheckpoint](), self._rows.get((ns, checkpoint_id))
        while at is not None and len(ancestors) < limit:
            ancestors.append(self._build_stored(at))
            at = self._rows.get((ns, at.parent_id)) if at.parent_id is not None else None
        return ancestors

    async def copy_from_thread(self, session: Any, thread_id: UUID) -> None:
        assert self._open_thread is not None
        source = self._open_thread(thread_id)
        self._rows = {**source._rows, **self._rows}
        self._writes = {**source._writes, **self._writes}

    async def prune(self, session: Any, keep_latest: int) -> None:
        spaces: dict[str, list[CheckpointKey]] = {}
        for key in self._rows:
            spaces.setdefault(key[0], []).append(key)
        self._retain(key for keys in spaces.values() for key in keys[-keep_latest:])

    async def delete_runs(self, session: Any, run_ids: Sequence[str]) -> None:
        self._retain(key for key, row in self._rows.items() if row.metadata.get("run_id") not in run_ids)

    async def delete_all(self, session: Any) -> None:
        self._retain(())

    def _retain(self, keys: Iterable[CheckpointKey]) -> None:
        """Keep these checkpoints and those from which their channels are rebuilt. Delete all others."""
        retained = set[CheckpointKey]()
        for key in keys:
            row, delta_channels = self._rows.get(key), set(self._rows[key].delta_channels)
            while row is not None:
                retained.add((row.ns, row.id))
                row = self._rows.get((row.ns, row.parent_id)) if delta_channels and row.parent_id is not None else None
                delta_channels &= set(row.delta_channels) if row else set()
        self._rows = {key: row for key, row in self._rows.items() if key in retained}
        self._writes = {key: writes for key, writes in self._writes.items() if key in retained}

    def _add_writes(self, key: CheckpointKey, writes: Sequence[TaskWrite]) -> None:
        stored = self._writes.setdefault(key, {})
        for write in writes:
            if write.idx < 0 or write.key not in stored:
                stored[write.key] = write

    def _build_stored(self, row: _CheckpointRow) -> StoredCheckpoint:
        writes = sorted(self._writes.get((row.ns, row.id), {}).values(), key=lambda write: write.sort_key)
        copied = [replace(write, value=self._copy_value(write.value)) for write in writes]
        checkpoint = self.serde.loads_typed(row.body)
        return StoredCheckpoint(row.ns, row.id, row.parent_id, None, checkpoint, row.metadata, tuple(copied))

    def _copy_value(self, value: Any) -> Any:
        return self.serde.loads_typed(self.serde.dumps_typed(value))
