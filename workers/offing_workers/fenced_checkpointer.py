"""The Postgres checkpointer of a claim. After its lease is lost, a worker cannot save."""

import asyncio
from collections.abc import Sequence
from typing import Any

import structlog
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from offing.core.errors import LeaseLostError, Unavailable
from offing.core.run import FencingToken
from offing.kernel.checkpointer import Checkpointer, RunPosition
from offing.storage.checkpoints import PostgresCheckpointStore, SentCheckpoint
from offing.storage.pool import Connection, Database

INPUT_VISIBLE_SECONDS = 0.1
"""Seconds after which the input of a run is written by itself.

Before, it is written with the checkpoint of the first node, which costs no transaction.
"""

log = structlog.get_logger()

_early_writes: set[asyncio.Task[None]] = set()
"""Keeps the tasks that write inputs until they end."""


class FencedCheckpointer(Checkpointer):
    """The checkpointer of one claim, over Postgres.

    `content_types` names the classes of a state that holds content. `None` means that the state is
    always small. `shows_input`: the state with the run's input can be read while the first node runs.
    `latest` reads the latest checkpoint in the transaction that loads the position. `None` means that it is read there.
    """

    def __init__(
        self,
        database: Database,
        fencing_token: FencingToken,
        *,
        turn_key: str = "",
        writes_at_exit: bool = False,
        content_types: Sequence[type] | None = None,
        keep_latest: int | None = None,
        shows_input: bool = False,
        latest: SentCheckpoint | None = None,
    ) -> None:
        store = PostgresCheckpointStore(database, fencing_token, content_types)
        self._postgres_store, self._sent_latest = store, latest
        keep = keep_latest if content_types is not None else None
        super().__init__(
            store,
            turn_key=turn_key,
            writes_at_exit=writes_at_exit,
            keeps_all=content_types is not None,
            keep_latest=keep,
        )
        self._shows_input = shows_input and content_types is not None and not writes_at_exit
        self._timer: asyncio.TimerHandle | None = None
        """Writes the input. `None` means that it is written, or that there is none."""

    async def load_position(self, connection: Connection) -> RunPosition | None:
        if self._sent_latest is None:
            return await super().load_position(connection)
        await self._load_calls(connection)
        return self.set_position(await self._postgres_store.read_sent(connection, "", self._sent_latest))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        if self._shows_input and not config.get("configurable", {}).get("checkpoint_ns"):
            self._time_input(metadata)
        return await super().aput(config, checkpoint, metadata, new_versions)

    def _time_input(self, metadata: CheckpointMetadata) -> None:
        """Start the timer with the checkpoint of an input, and stop it with that of the first node."""
        above: Any = self._latest.get("")
        if metadata.get("source") == "input":
            self._timer = asyncio.get_running_loop().call_later(INPUT_VISIBLE_SECONDS, self._begin_write)
        elif self._timer is not None and (above is None or above.metadata.get("source") != "input"):
            self._timer.cancel()
            self._timer = None

    def _begin_write(self) -> None:
        task = asyncio.ensure_future(self._write_input())
        _early_writes.add(task)
        task.add_done_callback(_early_writes.discard)

    async def _write_input(self) -> None:
        self._timer = None
        due = tuple(one for one in self._due if not one.ns)  # a journal's transaction may write the same ones
        try:
            async with self._store.transaction() as session:
                await self._put_due(session, due)
            self.confirm_saved(due)
        except (LeaseLostError, Unavailable) as error:  # the claim has ended, or its next transaction writes the input
            log.debug("the input of a run was not written early", reason=str(error))
