"""LangGraph in process with its own Postgres checkpointer, with which the platform is compared.

It is measured unchanged, with one lock around the checkpointer, and without that lock.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool


class _NoLock(nullcontext[None]):
    """Replaces the lock of the checkpointer."""


@asynccontextmanager
async def bare_saver(url: str, *, lock: bool) -> AsyncGenerator[AsyncPostgresSaver]:
    """Open LangGraph's checkpointer on a pool like that of the platform."""
    settings: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(url, min_size=1, max_size=16, kwargs=settings, open=False) as pool:
        saver = AsyncPostgresSaver(pool)  # type: ignore[arg-type]
        await saver.setup()
        if not lock:
            saver.lock = _NoLock()  # type: ignore[assignment]
        yield saver


@dataclass(frozen=True, slots=True)
class Bare:
    """Runs a graph with LangGraph's checkpointer."""

    graph: Any
    """Compiled with that checkpointer."""
    durability: str = "sync"

    async def run(self, inputs: dict[str, Any]) -> float:
        """Return the wall seconds of one run on its own thread."""
        config: Any = {"configurable": {"thread_id": str(uuid4())}, "recursion_limit": 100_000}
        began = time.perf_counter()
        durability: dict[str, Any] = {"durability": self.durability} if self.graph.checkpointer else {}
        await self.graph.ainvoke(inputs, config, **durability)
        return time.perf_counter() - began
