"""LangGraph's own interface over the checkpointer shows and does what it does over the one in memory."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from offing.core.run import Fence
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.saver import FencedSaver
from tests.storage.builders import claimed
from tests.storage.histories import PLAYS


def one_saver(pool: Database, fence: Fence, **how: Any) -> Callable[[], Awaitable[FencedSaver]]:
    """The same checkpointer for everything."""
    saver = FencedSaver(pool, fence, **how)

    async def open() -> FencedSaver:
        return saver

    return open


def savers(pool: Database, fence: Fence, **how: Any) -> Callable[[], Awaitable[FencedSaver]]:
    """A checkpointer for each thing that is done, after the one before has released the run."""
    before: list[FencedSaver] = []

    async def open() -> FencedSaver:
        async with pool.transaction(LOCAL_TENANT) as connection:
            for saver in before:
                await saver.flush(connection)
        before[:] = [FencedSaver(pool, fence, **how)]
        return before[0]

    return open


@pytest.mark.parametrize("opened", [one_saver, savers])
@pytest.mark.parametrize("name", PLAYS)
async def test_history_forks_and_changes_are_those_of_langgraph(
    pool: Database, name: str, opened: Callable[..., Callable[[], Awaitable[FencedSaver]]]
) -> None:
    build, play = PLAYS[name]
    memory, open_ours = InMemorySaver(), opened(pool, (await claimed(pool, LOCAL_TENANT)).fence, content=())

    async def reference() -> Any:
        return build().compile(checkpointer=memory)

    async def ours() -> Any:
        return build().compile(checkpointer=await open_ours())

    assert await play(ours) == await play(reference)
