"""The database as one epoch of a claim reaches it: nothing begins there once the epoch is over.

An epoch lasts from reading the journal until the slice ends, or until Postgres goes away and the journal has to be read
again. A branch of the graph can outlive it: in a thread, in a task that a node started, or because it takes its
cancellation for an ordinary error. Whatever it still asks of the database is refused here, and what it had begun
before is waited for. What the server alone still has under way is refused there (`storage.runs.reopen`).
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, LiteralString
from uuid import UUID

from offing.core.errors import Fenced
from offing.storage.pool import Connection, Database


class EpochDatabase(Database):
    """A view of a pool, which stays open."""

    def __init__(self, pool: Database) -> None:
        self._behind = pool
        self._over, self._under_way = False, 0
        self._still = asyncio.Event()
        """None of its transactions is under way."""
        self._still.set()

    @asynccontextmanager
    async def transaction(self, tenant: UUID) -> AsyncGenerator[Connection]:
        """As the pool's. Raises Fenced when the epoch is over."""
        with self._counted():
            async with self._behind.transaction(tenant) as connection:
                yield connection

    async def platform(self, query: LiteralString, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._counted():
            return await self._behind.platform(query, parameters)

    async def end(self) -> None:
        """Let nothing begin any more. Returns when all that is under way has its outcome."""
        self._over = True
        await self._still.wait()

    @contextmanager
    def _counted(self) -> Generator[None]:
        if self._over:
            raise Fenced("This epoch of the claim is over.")
        self._under_way += 1
        self._still.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._still.set()
