"""The interface between a checkpointer and the store of its checkpoints."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from uuid import UUID

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from offing.core.checkpoint import StoredCheckpoint, TaskWrite


class CheckpointStore(Protocol):
    """Stores the checkpoints of one thread. A session is the value that `transaction` yields."""

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
        parent_id: str | None,
        turn: int | None,
        delta_channels: Sequence[str],
        parent_writes: Sequence[TaskWrite],
    ) -> Any:
        """Encode a checkpoint for `put_checkpoint`. Raises StateTooLargeError."""
        ...

    async def put_checkpoint(self, session: Any, prepared: Any, /) -> None: ...

    async def put_writes(self, session: Any, ns: str, checkpoint_id: str, writes: Sequence[TaskWrite], /) -> None: ...

    async def delete_namespaces(self, session: Any, namespaces: Sequence[str], /) -> None: ...

    async def get_call_roots(self, session: Any, /) -> Mapping[str, str]: ...

    async def find_checkpoint(self, session: Any, ns: str, checkpoint_id: str | None, /) -> StoredCheckpoint | None: ...

    async def list_checkpoints(
        self,
        session: Any,
        ns: str | None,
        checkpoint_id: str | None,
        metadata: Mapping[str, Any],
        before_id: str | None,
        limit: int,
        /,
    ) -> Sequence[StoredCheckpoint]: ...

    async def list_ancestors(
        self, session: Any, ns: str, checkpoint_id: str, channels: Sequence[str], limit: int, /
    ) -> Sequence[StoredCheckpoint]: ...

    async def copy_from_thread(self, session: Any, thread_id: UUID, /) -> None: ...

    async def prune(self, session: Any, keep_latest: int, /) -> None: ...

    async def delete_runs(self, session: Any, run_ids: Sequence[str], /) -> None: ...

    async def delete_all(self, session: Any, /) -> None: ...
