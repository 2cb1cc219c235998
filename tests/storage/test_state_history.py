"""LangGraph's own interface over the checkpointer shows and does what it does over the one in memory."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from offing.kernel.checkpointer import Checkpointer
from offing.kernel.memory_checkpoint_store import MemoryCheckpointStore
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.state_serializer import build_serializer
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import claimed
from tests.storage.graph_histories import AT, PLAYS, delta, files, history, nested, sends, updated

CreateCheckpointer = Callable[[], Checkpointer]
Open = Callable[[], Awaitable[Checkpointer]]


def one_checkpointer(make: CreateCheckpointer) -> Open:
    """The same one for everything."""
    checkpointer = make()

    async def open() -> Checkpointer:
        return checkpointer

    return open


def one_each(make: CreateCheckpointer) -> Open:
    """A new one for each thing that is done, after the one before has released the run."""
    before: list[Checkpointer] = []

    async def open() -> Checkpointer:
        for checkpointer in before:
            await checkpointer.flush_now()
        before[:] = [make()]
        return before[0]

    return open


def compiled(build: Callable[[], Any], open: Open) -> Callable[[], Awaitable[Any]]:
    async def graph() -> Any:
        return build().compile(checkpointer=await open())

    return graph


async def as_langgraph_does(name: str) -> Any:
    build, play = PLAYS[name]
    memory = InMemorySaver()

    async def graph() -> Any:
        return build().compile(checkpointer=memory)

    return await play(graph)


@pytest.mark.parametrize("opened", [one_checkpointer, one_each])
@pytest.mark.parametrize("name", PLAYS)
async def test_history_forks_and_changes_are_those_of_langgraph(
    pool: Database, name: str, opened: Callable[[CreateCheckpointer], Open]
) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    build, play = PLAYS[name]
    open = opened(lambda: FencedCheckpointer(pool, fence, content_types=()))
    assert await play(compiled(build, open)) == await as_langgraph_does(name)


@pytest.mark.parametrize("name", PLAYS)
async def test_history_in_the_memory_of_the_test_kit_is_the_same(name: str) -> None:
    build, play = PLAYS[name]
    store = MemoryCheckpointStore(build_serializer())
    open = one_each(lambda: Checkpointer(store, keeps_all=True))
    assert await play(compiled(build, open)) == await as_langgraph_does(name)


async def test_a_subgraph_with_a_memory_continues_its_call_after_an_update_of_the_state(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    open, memory = one_each(lambda: FencedCheckpointer(pool, fence, content_types=())), InMemorySaver()

    async def as_langgraph_does() -> Any:
        return nested(True)().compile(checkpointer=memory)

    assert await updated(compiled(nested(True), open)) == await updated(as_langgraph_does)


async def test_a_graph_that_counts_turns_is_forked_and_changed_at_any_of_them(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    open = one_each(lambda: FencedCheckpointer(pool, fence, turn_key="count"))
    graph = compiled(files, open)
    await (await graph()).ainvoke({"files": {"a": "b"}, "count": 0}, AT)
    past = await history(await graph())
    assert [snapshot.values["count"] for snapshot in past] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert [snapshot.parent_config is None for snapshot in past] == [False] * 9 + [True]
    forked = await (await graph()).ainvoke(None, past[4].config)
    assert forked == past[0].values
    changed = await (await graph()).aupdate_state(past[6].config, {"files": {"a": "changed"}})
    assert (await (await graph()).aget_state(changed)).values["files"]["a"] == "changed"
    ended = await (await graph()).ainvoke(None, AT)
    assert ended == {"files": past[0].values["files"] | {"a": "changed"}, "count": 9}
    assert (await (await graph()).aget_state(past[0].config)).values["files"]["a"] == "b"


async def test_a_graph_without_turns_is_forked_at_any_superstep(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    graph = compiled(sends, one_each(lambda: FencedCheckpointer(pool, fence)))
    ended = await (await graph()).ainvoke({"count": 3, "log": []}, AT)
    past = await history(await graph())
    assert [snapshot.metadata["step"] for snapshot in past] == [3, 2, 1, 0]
    assert await (await graph()).ainvoke(None, past[2].config) == ended
    assert len(await history(await graph())) == 7


@pytest.mark.parametrize("content", [(), None])
async def test_what_is_written_at_the_release_alone_is_the_whole_state(
    pool: Database, content: tuple[type, ...] | None
) -> None:
    """Under the durability `exit`, also of a channel that is rebuilt from what was written before."""
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    states: list[Any] = []
    for open in (one_each(lambda: FencedCheckpointer(pool, fence, writes_at_exit=True, content_types=content)), None):
        memory = InMemorySaver()
        for inputs in ({"log": ["in"], "count": 0}, {"log": ["again"]}, {"log": ["and again"]}):
            saver = await open() if open else memory
            graph: Any = delta().compile(checkpointer=saver)
            await graph.ainvoke(inputs, AT, durability="exit")
        saver = await open() if open else memory
        graph = delta().compile(checkpointer=saver)
        states.append((await graph.aget_state(AT)).values)
    assert states[0] == states[1]
    assert len(states[0]["log"]) == 24
