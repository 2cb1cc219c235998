"""A claimed run whose graphs are executed by LangGraph itself, in one version and, carried over, in another."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from langgraph.types import Command

from offing.core.run import FencingToken
from offing.core.step import CallKey
from offing.core.tool import SideEffect
from offing.kernel.invocation_values import build_run_channels
from offing.langchain import register_langgraph
from offing.storage import intents, runs
from offing.storage.checkpoints import PostgresCheckpointStore
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from offing_workers.graph_upgrade import upgrade_run
from tests.storage.builders import TERM

AT: Any = {"configurable": {"thread_id": "t"}}

Build = Callable[[], Any]
Upgrade = Callable[[str, dict[str, Any]], Any]


def same(version: str, state: dict[str, Any]) -> dict[str, Any]:
    return state


class UpgradableRun:
    """A claimed run, which plays a graph and is carried over to another."""

    def __init__(self, pool: Database, fence: FencingToken) -> None:
        self.pool, self.fence = pool, fence
        self.content: tuple[type, ...] | None = ()
        """`None`: its graph knows the SDK, and its state is small."""

    async def play(self, build: Build, inputs: Any) -> Any:
        """As far as the graph comes. A node that raises stops it where it is."""
        saver: Any = FencedCheckpointer(self.pool, self.fence, content_types=self.content)
        graph = build()
        graph = graph.compile(checkpointer=saver) if hasattr(graph, "compile") else graph.copy({"checkpointer": saver})
        graph = graph.copy({"channels": build_run_channels(graph.channels, str(self.fence.run_id))})
        with suppress(ZeroDivisionError):
            await graph.ainvoke(inputs, AT, durability="sync")
        state = await graph.aget_state(AT)
        await saver.flush_now()
        return state

    async def answer(self, build: Build, request: Any, value: Any) -> Any:
        """Give this to the interrupt that was pending in a state; the state at the end."""
        (pending,) = request.interrupts
        return (await self.play(build, Command(resume={pending.id: value}))).values

    async def carry(self, build: Build, upgrade: Upgrade = same) -> str:
        graph = register_langgraph("counting", build, code_path=__file__, upgrade_state=upgrade)
        if self.content is None:
            graph = replace(graph, langgraph_adapter=None, initial_state=lambda _: {"text": "", "log": []})
        store = PostgresCheckpointStore(self.pool, self.fence, self.content)
        async with self.pool.transaction(LOCAL_TENANT) as connection:
            row = await runs.get_run(connection, self.fence.run_id)
            return await upgrade_run(connection, self.fence, TERM, row, graph, store)

    async def rows(self) -> list[tuple[str, datetime]]:
        """Ids and times of the stored checkpoints, in the order of writing."""
        sql = "select checkpoint_id, created_at from checkpoint where thread_id = %s order by nth"
        async with self.pool.transaction(LOCAL_TENANT) as connection:
            return await (await connection.execute(sql, (self.fence.thread_id,))).fetchall()

    async def declare(self, path: str, superstep: int) -> None:
        async with self.pool.transaction(LOCAL_TENANT) as connection:
            key = CallKey(superstep, path, 0, "digest")
            await intents.insert_intent(connection, self.fence, key, "send_mail", {}, SideEffect.AT_MOST_ONCE)
