"""Checkpoints of one thread in memory, each stored whole, for rehearsals and tests."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from offing.core.checkpoint import StoredCheckpoint, TaskWrite

Key = tuple[str, str]
"""Namespace and id of a checkpoint."""


@dataclass(frozen=True, slots=True)
class _Row:
    ns: str
    id: str
    parent: str | None
    body: tuple[str, bytes]
    metadata: Mapping[str, Any]
    delta: tuple[str, ...]
    parent_writes: tuple[TaskWrite, ...]


class MemoryCheckpoints:
    """`open_thread` returns the checkpoints of another thread, to copy from. `None` means that there is no other."""

    def __init__(
        self,
        serde: SerializerProtocol,
        thread: str = "run",
        open_thread: "Callable[[UUID], MemoryCheckpoints] | None" = None,
    ) -> None:
        self.serde, self.thread, self._open_thread = serde, thread, open_thread
        self._rows: dict[Key, _Row] = {}
        """In the order of writing."""
        self._writes: dict[Key, dict[tuple[str, int], TaskWrite]] = {}

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        yield None

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
    ) -> _Row:
        body = self.serde.dumps_typed(checkpoint)
        return _Row(ns, checkpoint["id"], parent, body, dict(metadata), tuple(delta), tuple(parent_writes))

    async def put(self, session: Any, prepared: _Row) -> None:
        self._rows[prepared.ns, prepared.id] = prepared
        if prepared.parent is not None:
            self._add_writes((prepared.ns, prepared.parent), prepared.parent_writes)

    async def put_writes(self, session: Any, ns: str, checkpoint_id: str, writes: Sequence[TaskWrite]) -> None:
        self._add_writes((ns, checkpoint_id), writes)

    async def end_calls(self, session: Any, namespaces: Sequence[str]) -> None:
        self._retain(key for key in self._rows if key[0] not in namespaces)

    async def calls(self, session: Any) -> Mapping[str, str]:
        called = [row for row in self._rows.values() if ":" in row.ns]
        return {row.ns: row.metadata.get("parents", {}).get("", "") for row in called}

    async def get(self, session: Any, ns: str, id: str | None) -> StoredCheckpoint | None:
        return self.find(ns, id)

    def find(self, ns: str, id: str | None = None) -> StoredCheckpoint | None:
        """A checkpoint, or the latest of a namespace."""
        found = [row for row in self._rows.values() if row.ns == ns and id in (None, row.id)]
        return self._stored(found[-1]) if found else None

    async def list(
        self,
        session: Any,
        ns: str | None,
        id: str | None,
        metadata: Mapping[str, Any],
        before: str | None,
        limit: int,
    ) -> Sequence[StoredCheckpoint]:
        rows = list(self._rows.values())
        if before is not None:
            edge = next((nth for nth, row in enumerate(rows) if row.id == before), None)
            rows = [row for row in rows if row.id < before] if edge is None else rows[:edge]
        found = [
            row
            for row in reversed(rows)
            if ns in (None, row.ns)
            and id in (None, row.id)
            and all(row.metadata.get(name) == value for name, value in metadata.items())
        ]
        return [self._stored(row) for row in found[:limit]]

    async def ancestors(
        self, session: Any, ns: str, id: str, channels: Sequence[str], limit: int
    ) -> Sequence[StoredCheckpoint]:
        found, at = list[StoredCheckpoint](), self._rows.get((ns, id))
        while at is not None and len(found) < limit:
            found.append(self._stored(at))
            at = self._rows.get((ns, at.parent)) if at.parent is not None else None
        return found

    async def copy_from(self, session: Any, thread: UUID) -> None:
        assert self._open_thread is not None
        source = self._open_thread(thread)
        self._rows = {**source._rows, **self._rows}
        self._writes = {**source._writes, **self._writes}

    async def prune(self, session: Any, keep: int) -> None:
        spaces: dict[str, list[Key]] = {}
        for key in self._rows:
            spaces.setdefault(key[0], []).append(key)
        self._retain(key for keys in spaces.values() for key in keys[-keep:])

    async def drop_runs(self, session: Any, run_ids: Sequence[str]) -> None:
        self._retain(key for key, row in self._rows.items() if row.metadata.get("run_id") not in run_ids)

    async def drop_all(self, session: Any) -> None:
        self._retain(())

    def _retain(self, keys: Iterable[Key]) -> None:
        """Keep these checkpoints and those that their channels are rebuilt from."""
        kept = set[Key]()
        for key in keys:
            row, wanted = self._rows.get(key), set(self._rows[key].delta)
            while row is not None:
                kept.add((row.ns, row.id))
                row = self._rows.get((row.ns, row.parent)) if wanted and row.parent is not None else None
                wanted &= set(row.delta) if row else set()
        self._rows = {key: row for key, row in self._rows.items() if key in kept}
        self._writes = {key: writes for key, writes in self._writes.items() if key in kept}

    def _add_writes(self, key: Key, writes: Sequence[TaskWrite]) -> None:
        stored = self._writes.setdefault(key, {})
        for write in writes:
            if write.idx < 0 or write.key not in stored:
                stored[write.key] = write

    def _stored(self, row: _Row) -> StoredCheckpoint:
        writes = sorted(self._writes.get((row.ns, row.id), {}).values(), key=lambda write: write.order)
        copied = [replace(write, value=self._copied(write.value)) for write in writes]
        checkpoint = self.serde.loads_typed(row.body)
        return StoredCheckpoint(row.ns, row.id, row.parent, None, checkpoint, row.metadata, tuple(copied))

    def _copied(self, value: Any) -> Any:
        return self.serde.loads_typed(self.serde.dumps_typed(value))
