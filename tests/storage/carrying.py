"""A claimed run whose graphs are executed by LangGraph itself, in one version and, carried over, in another."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from langgraph.types import Command

from offing.core.run import Fence
from offing.core.step import CallKey
from offing.core.tool import Effect
from offing.kernel.invocation_values import channels_for
from offing.langchain import plain_graph
from offing.storage import intents, runs
from offing.storage.checkpoints import PostgresCheckpoints
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.carrying_over import carried_over
from offing_workers.saver import FencedSaver
from tests.storage.builders import TERM

AT: Any = {"configurable": {"thread_id": "t"}}

Build = Callable[[], Any]
Upgrade = Callable[[str, dict[str, Any]], Any]


def same(version: str, state: dict[str, Any]) -> dict[str, Any]:
    return state


class Held:
    """A claimed run, which plays a graph and is carried over to another."""

    def __init__(self, pool: Database, fence: Fence) -> None:
        self.pool, self.fence = pool, fence
        self.content: tuple[type, ...] | None = ()
        """`None`: its graph knows the SDK, and its state is small."""

    async def play(self, build: Build, given: Any) -> Any:
        """As far as the graph comes. A node that raises stops it where it is."""
        saver: Any = FencedSaver(self.pool, self.fence, content=self.content)
        graph = build()
        graph = graph.compile(checkpointer=saver) if hasattr(graph, "compile") else graph.copy({"checkpointer": saver})
        graph = graph.copy({"channels": channels_for(graph.channels, str(self.fence.run))})
        with suppress(ZeroDivisionError):
            await graph.ainvoke(given, AT, durability="sync")
        state = await graph.aget_state(AT)
        await saver.flush_now()
        return state

    async def answer(self, build: Build, asked: Any, value: Any) -> Any:
        """Give this to the interrupt that was pending in a state; the state at the end."""
        (pending,) = asked.interrupts
        return (await self.play(build, Command(resume={pending.id: value}))).values

    async def carry(self, build: Build, upgrade: Upgrade = same) -> str:
        graph = plain_graph("counting", build, code=__file__, upgrade=upgrade)
        if self.content is None:
            graph = replace(graph, plain=None, start=lambda _: {"text": "", "log": []})
        store = PostgresCheckpoints(self.pool, self.fence, self.content)
        async with self.pool.transaction(LOCAL_TENANT) as connection:
            row = await runs.by_id(connection, self.fence.run)
            return await carried_over(connection, self.fence, TERM, row, graph, store)

    async def rows(self) -> list[tuple[str, datetime]]:
        """Ids and times of the stored checkpoints, in the order of writing."""
        sql = "select checkpoint_id, created_at from checkpoint where thread_id = %s order by nth"
        async with self.pool.transaction(LOCAL_TENANT) as connection:
            return await (await connection.execute(sql, (self.fence.thread,))).fetchall()

    async def declare(self, path: str, superstep: int) -> None:
        async with self.pool.transaction(LOCAL_TENANT) as connection:
            key = CallKey(superstep, path, 0, "digest")
            await intents.declare(connection, self.fence, key, "send_mail", {}, Effect.AT_MOST_ONCE)
