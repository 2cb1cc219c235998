"""Checkpoints in memory.

They follow the platform's retention rule; unsaved ones are dropped in a crash.
"""

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from offing.core.errors import StateTooLargeError
from offing.kernel.checkpointer import Checkpointer
from offing.kernel.memory_checkpoint_store import MemoryCheckpointStore
from offing.storage.checkpoints import MAX_STATE_BYTES
from offing.storage.state_serializer import build_serializer


class MemoryCheckpointer(Checkpointer):
    """Checkpointer that outlives the workers of a simulated run. `turn_counter` is that of the graph."""

    def __init__(self, turn_counter: str) -> None:
        self._memory_store = MemoryCheckpointStore(build_serializer())
        super().__init__(self._memory_store, turn_key=turn_counter)
        self.sizes: list[int] = []
        """Size in bytes of each checkpoint."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        self.sizes.append(len(self.serde.dumps_typed(checkpoint)[1]))
        if self.sizes[-1] > MAX_STATE_BYTES:
            raise StateTooLargeError(
                f"The state of the graph has {self.sizes[-1]} bytes; the maximum is {MAX_STATE_BYTES}."
            )
        return await super().aput(config, checkpoint, metadata, new_versions)

    def discard_unsaved(self) -> int | None:
        """Drop unsaved checkpoints after a crash and return the superstep to continue after.

        `None` means that the run starts from the beginning.
        """
        self.discard_memory()
        position = self.set_position(self._memory_store.find_in_memory(""))
        return None if position is None else position.superstep
