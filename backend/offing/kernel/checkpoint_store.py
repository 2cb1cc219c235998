"""What a checkpointer asks of the store of its checkpoints."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from uuid import UUID

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from offing.core.checkpoint import StoredCheckpoint, TaskWrite


class CheckpointStore(Protocol):
    """Keeps the checkpoints of one thread. A session is what the store's transactions yield."""

    @property
    def serde(self) -> SerializerProtocol: ...

    @property
    def thread(self) -> str: ...

    def transaction(self) -> AbstractAsyncContextManager[Any]: ...

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
    ) -> Any:
        """Encode a checkpoint for `put`. Raises StateTooLarge."""
        ...

    async def put(self, session: Any, prepared: Any, /) -> None: ...

    async def put_writes(self, session: Any, ns: str, checkpoint_id: str, writes: Sequence[TaskWrite], /) -> None: ...

    async def end_calls(self, session: Any, namespaces: Sequence[str], /) -> None: ...

    async def calls(self, session: Any, /) -> Mapping[str, str]: ...

    async def get(self, session: Any, ns: str, id: str | None, /) -> StoredCheckpoint | None: ...

    async def list(
        self,
        session: Any,
        ns: str | None,
        id: str | None,
        metadata: Mapping[str, Any],
        before: str | None,
        limit: int,
        /,
    ) -> Sequence[StoredCheckpoint]: ...

    async def ancestors(
        self, session: Any, ns: str, id: str, channels: Sequence[str], limit: int, /
    ) -> Sequence[StoredCheckpoint]: ...

    async def copy_from(self, session: Any, thread: UUID, /) -> None: ...

    async def prune(self, session: Any, keep: int, /) -> None: ...

    async def drop_runs(self, session: Any, run_ids: Sequence[str], /) -> None: ...

    async def drop_all(self, session: Any, /) -> None: ...
