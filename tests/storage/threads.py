"""A checkpointer for any thread: for each, a run that is claimed, and the claim's own checkpointer."""

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from offing.storage import runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.saver import FencedSaver
from tests.storage.builders import TERM, a_run, stored


async def saver_of(pool: Database, thread: UUID) -> FencedSaver:
    """The checkpointer of a new run's claim in a thread."""
    run = await stored(pool, LOCAL_TENANT, a_run(thread=thread))
    claim = await runs.claim(pool, run.id, "worker", TERM)
    assert claim is not None
    return FencedSaver(pool, claim.fence, content=())


class Threads(BaseCheckpointSaver[str]):
    """Hands each call to the checkpointer of its thread."""

    def __init__(self, pool: Database) -> None:
        super().__init__()
        self._pool = pool
        self._savers: dict[str, FencedSaver] = {}

    async def _of(self, thread: str) -> FencedSaver:
        if thread not in self._savers:
            self._savers[thread] = await saver_of(self._pool, UUID(thread))
        return self._savers[thread]

    async def _named(self, config: RunnableConfig | None) -> FencedSaver:
        assert config is not None
        return await self._of(config["configurable"]["thread_id"])  # pyright: ignore[reportTypedDictNotRequiredAccess]

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await (await self._named(config)).aget_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in (await self._named(config)).alist(config, filter=filter, before=before, limit=limit):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await (await self._named(config)).aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await (await self._named(config)).aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await (await self._of(thread_id)).adelete_thread(thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._flushed(source_thread_id)
        await (await self._of(target_thread_id)).acopy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread_id in thread_ids:
            await (await self._of(thread_id)).aprune([thread_id], strategy=strategy)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        for saver in self._savers.values():
            await saver.adelete_for_runs(run_ids)

    async def _flushed(self, thread_id: str) -> None:
        """What waits in memory for the claim's next step is written."""
        async with self._pool.transaction(LOCAL_TENANT) as connection:
            await (await self._of(thread_id)).flush(connection)
