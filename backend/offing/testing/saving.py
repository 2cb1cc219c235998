"""Checkpoints in memory, kept as the platform keeps them: one a turn, and with the next step, or one a superstep."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from offing.core.errors import StateTooLarge
from offing.storage.checkpoints import LIMIT
from offing.storage.plain_state import serializer


@dataclass(frozen=True, slots=True)
class _Row:
    config: RunnableConfig
    body: tuple[str, bytes]
    metadata: CheckpointMetadata


class MemorySaver(BaseCheckpointSaver[str]):
    """Outlives the workers of one rehearsed run. `turn_key`: the graph's."""

    def __init__(self, turn_key: str) -> None:
        super().__init__(serde=serializer())
        self._turn_key, self._turn = turn_key, None
        self._kept: dict[str, _Row] = {}
        self._latest: dict[str, _Row] = {}
        self._due: dict[str, _Row] = {}
        self.sizes: list[int] = []
        """Bytes of each checkpoint."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        row = self._latest.get(_namespace(config))
        if row is None:
            return None
        return CheckpointTuple(row.config, self.serde.loads_typed(row.body), row.metadata, None, [])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        ns = _namespace(config)
        body = self.serde.dumps_typed(checkpoint)
        self.sizes.append(len(body[1]))
        if len(body[1]) > LIMIT:
            raise StateTooLarge(f"The graph's state has {len(body[1])} bytes, over {LIMIT}.")
        where: RunnableConfig = {
            "configurable": {"thread_id": "run", "checkpoint_ns": ns, "checkpoint_id": checkpoint["id"]}
        }
        row = self._latest[ns] = _Row(where, body, metadata)
        if metadata.get("source") == "input":
            return where
        turn = checkpoint["channel_values"].get(self._turn_key) if self._turn_key else None
        if not self._turn_key or turn != self._turn:
            self._due[ns], self._turn = row, turn
        if not self._turn_key:
            self.save()
        return where

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Kept nowhere: a node that was lost runs again."""

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for ns in self._latest:
            found = await self.aget_tuple({"configurable": {"checkpoint_ns": ns}})
            if found is not None:
                yield found

    def get_next_version(self, current: str | None, channel: None) -> str:
        return f"{int(current) + 1 if current else 1:08d}"

    def save(self) -> None:
        """What is due is kept from now on: a step was recorded."""
        self._kept |= self._due
        self._due.clear()

    def release(self) -> int | None:
        """The worker lets go: everything is kept. The superstep to go on after; None: from the beginning."""
        self._kept |= self._latest
        return self.lose()

    def lose(self) -> int | None:
        """The worker is gone: go back to what was kept. The superstep to go on after; None: from the beginning."""
        self._latest, self._due = dict(self._kept), {}
        if (row := self._kept.get("")) is None:
            self._turn = None
            return None
        values = self.serde.loads_typed(row.body)["channel_values"]
        self._turn = values.get(self._turn_key) if self._turn_key else None
        return row.metadata.get("step", -1)


def _namespace(config: RunnableConfig) -> str:
    return config.get("configurable", {}).get("checkpoint_ns", "")
