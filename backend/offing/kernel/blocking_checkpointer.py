"""The blocking half of LangGraph's checkpointer interface, for nodes that call a subgraph with `invoke` or `stream`.

Such a node runs in a thread. Its calls are executed by the event loop of the run, like all others.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

T = TypeVar("T")


class BlockingCheckpointer(BaseCheckpointSaver[str]):
    """A checkpointer whose blocking methods wait for the asynchronous ones.

    Raises RuntimeError if a blocking method is called on the event loop itself, which would wait for itself.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    def set_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the event loop that executes the run."""
        self._loop = loop

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._wait(self.aget_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        async def collect() -> Sequence[CheckpointTuple]:
            return [one async for one in self.alist(config, filter=filter, before=before, limit=limit)]

        yield from self._wait(collect())

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._wait(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._wait(self.aput_writes(config, writes, task_id, task_path))

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        if self._loop is None or self._loop is _find_running_loop():
            call.close()
            raise RuntimeError("An asynchronous node calls a subgraph without await. Use ainvoke or astream there.")
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


def _find_running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
