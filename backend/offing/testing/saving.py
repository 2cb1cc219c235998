"""Checkpoints in memory, kept by the platform's own rule, and lost with a worker."""

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from offing.core.errors import StateTooLarge
from offing.kernel.checkpointer import Checkpointer
from offing.kernel.memory_checkpoints import MemoryCheckpoints
from offing.storage.checkpoints import LIMIT
from offing.storage.plain_state import serializer


class MemorySaver(Checkpointer):
    """Outlives the workers of one rehearsed run. `turn_key`: the graph's."""

    def __init__(self, turn_key: str) -> None:
        self._kept = MemoryCheckpoints(serializer())
        super().__init__(self._kept, turn_key=turn_key)
        self.sizes: list[int] = []
        """Bytes of each checkpoint."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        self.sizes.append(len(self.serde.dumps_typed(checkpoint)[1]))
        if self.sizes[-1] > LIMIT:
            raise StateTooLarge(f"The graph's state has {self.sizes[-1]} bytes, over {LIMIT}.")
        return await super().aput(config, checkpoint, metadata, new_versions)

    def lose(self) -> int | None:
        """The worker is gone: go back to what was kept. The superstep to go on after; None: from the beginning."""
        self.forget()
        position = self.begin_after(self._kept.find(""))
        return None if position is None else position.superstep
