"""A worker that crashes at any moment of a graph's saving: the next ends with the same state and history."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.types import Command

from offing.core.run import FencingToken
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import claimed
from tests.storage.graph_histories import AT, PLAYS, history, plain

INPUT: dict[str, Any] = {
    "messages": {"messages": [("user", "one")]},
    "delta": {"log": ["in"], "count": 0},
    "files": {"files": {"a": "b"}, "count": 0},
    "sends": {"count": 3, "log": []},
    "interrupts": {"count": 1, "log": []},
    "subgraph": {"count": 1, "log": []},
    "subgraph with a memory": {"count": 1, "log": []},
    "calls of a subgraph with a memory": {"count": 0, "log": []},
    "calls of a subgraph with a memory within another": {"count": 0, "log": []},
}

RELEASES = 4
"""A run that waits is released, and the next claim answers."""


class WorkerLostError(Exception):
    """The worker is gone."""


class MortalSaver(FencedCheckpointer):
    """Its worker crashes at the moment `dies_at`, counted from 0. `None` means never."""

    dies_at: int | None = None
    moments = 0
    has_steps = False
    """Each task records a step, with which the checkpoints that are due are written."""

    def _moment(self) -> None:
        nth, MortalSaver.moments = MortalSaver.moments, MortalSaver.moments + 1
        if nth == MortalSaver.dies_at:
            raise WorkerLostError

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        self._moment()
        saved = await super().aput(config, checkpoint, metadata, new_versions)
        self._moment()
        return saved

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._moment()
        await super().aput_writes(config, writes, task_id, task_path)
        if self.has_steps:
            async with self._store.transaction() as connection:
                due = await self.save_due(connection)
            self.confirm_saved(due)


async def claim(pool: Database, fence: FencingToken, name: str, **how: Any) -> bool:
    """One claim: begin or continue as a slice does, and release. Whether the graph has ended."""
    saver = MortalSaver(pool, fence, **how)
    async with pool.transaction(LOCAL_TENANT) as connection:
        position = await saver.load_position(connection)
    answers = {interrupt.id: f"answer to {interrupt.value}" for interrupt in saver.pending_interrupts()}
    inputs: Any = INPUT[name] if position is None else Command(resume=answers) if answers else None
    graph: Any = PLAYS[name][0]().compile(checkpointer=saver)
    await graph.ainvoke(inputs, AT, durability="sync")
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.flush(connection)
    return not (await graph.aget_state(AT)).next


async def ended(pool: Database, fence: FencingToken, name: str, **how: Any) -> Any:
    """State and history at the end."""
    for _ in range(2 * RELEASES):
        try:
            if await claim(pool, fence, name, **how):
                break
        except WorkerLostError:
            continue
    graph: Any = PLAYS[name][0]().compile(checkpointer=FencedCheckpointer(pool, fence, **how))
    past = await history(graph)
    return plain(past[0].values), [(snapshot.metadata["step"], plain(snapshot.values)) for snapshot in past]


@pytest.mark.parametrize("name", PLAYS)
async def test_a_crash_at_any_moment_leaves_no_trace_in_the_state(
    pool: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MortalSaver, "dies_at", None)
    monkeypatch.setattr(MortalSaver, "moments", 0)
    whole = await ended(pool, (await claimed(pool, LOCAL_TENANT)).fence, name, content_types=())
    assert whole[0]["count" if "count" in whole[0] else "messages"]
    for moment in range(MortalSaver.moments):
        monkeypatch.setattr(MortalSaver, "dies_at", moment)
        monkeypatch.setattr(MortalSaver, "moments", 0)
        assert await ended(pool, (await claimed(pool, LOCAL_TENANT)).fence, name, content_types=()) == whole, moment


@pytest.mark.parametrize(
    ("name", "turn_key"),
    [
        *product(("delta", "files", "sends", "interrupts", "subgraph", "subgraph with a memory"), ("count", "")),
        ("calls of a subgraph with a memory", ""),
        ("calls of a subgraph with a memory within another", ""),
    ],
)
async def test_a_crash_at_any_moment_leaves_no_trace_in_the_state_of_a_graph_that_uses_the_sdk(
    pool: Database, name: str, turn_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps one checkpoint per turn, or per superstep."""
    monkeypatch.setattr(MortalSaver, "has_steps", True)
    monkeypatch.setattr(MortalSaver, "dies_at", None)
    monkeypatch.setattr(MortalSaver, "moments", 0)
    whole, _ = await ended(pool, (await claimed(pool, LOCAL_TENANT)).fence, name, turn_key=turn_key)
    assert whole["count"]
    for moment in range(MortalSaver.moments):
        monkeypatch.setattr(MortalSaver, "dies_at", moment)
        monkeypatch.setattr(MortalSaver, "moments", 0)
        state, _ = await ended(pool, (await claimed(pool, LOCAL_TENANT)).fence, name, turn_key=turn_key)
        assert state == whole, moment
