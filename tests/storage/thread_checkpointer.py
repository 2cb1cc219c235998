"""A checkpointer for any thread, which has the own one of each."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
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

from offing.kernel.checkpointer import Checkpointer
from offing.kernel.memory_checkpoint_store import MemoryCheckpointStore
from offing.storage import claims, runs, threads
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.state_serializer import build_serializer
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import TERM, a_run

Open = Callable[[str], Awaitable[Checkpointer]]
"""Makes the checkpointer of a thread."""


async def saver_of(pool: Database, thread_id: UUID, *, is_new: bool = True) -> FencedCheckpointer:
    """The checkpointer of a new run's claim in a thread."""
    async with pool.transaction(LOCAL_TENANT) as connection:
        if is_new:
            await threads.insert_thread(connection, LOCAL_TENANT, thread_id, "thread")
        run = await runs.insert_run(connection, LOCAL_TENANT, a_run(thread_id=thread_id))
    claim = await claims.claim_run(pool, run.id, "worker", TERM)
    assert claim is not None
    return FencedCheckpointer(pool, claim.fence, content_types=())


def in_postgres(pool: Database) -> Open:
    """For each thread a run that is claimed, and the claim's checkpointer."""

    async def open(thread: str) -> Checkpointer:
        return await saver_of(pool, UUID(thread))

    return open


def in_memory(_: Database) -> Open:
    threads: dict[UUID, MemoryCheckpointStore] = {}

    async def open(thread: str) -> Checkpointer:
        store = threads[UUID(thread)] = MemoryCheckpointStore(build_serializer(), thread, threads.__getitem__)
        return Checkpointer(store, keeps_all=True)

    return open


class Threads(BaseCheckpointSaver[str]):
    """Hands each call to the checkpointer of its thread."""

    def __init__(self, open: Open) -> None:
        super().__init__()
        self._open = open
        self._savers: dict[str, Checkpointer] = {}

    async def _of(self, thread: str) -> Checkpointer:
        if thread not in self._savers:
            self._savers[thread] = await self._open(thread)
        return self._savers[thread]

    async def _named(self, config: RunnableConfig | None) -> Checkpointer:
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
        async for result in (await self._named(config)).alist(config, filter=filter, before=before, limit=limit):
            yield result

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
        await (await self._of(source_thread_id)).flush_now()
        await (await self._of(target_thread_id)).acopy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread_id in thread_ids:
            await (await self._of(thread_id)).aprune([thread_id], strategy=strategy)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        for saver in self._savers.values():
            await saver.adelete_for_runs(run_ids)
