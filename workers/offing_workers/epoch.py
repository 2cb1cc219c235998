"""The database as seen by one epoch of a claim. After the epoch, no operation can begin.

An epoch lasts from reading the journal until the slice ends, or until Postgres becomes unavailable
and the journal has to be read again. A branch of the graph can outlive it: in a thread, in a task
that a node started, or because it treats its cancellation as an ordinary error. Later operations of
such a branch are rejected here, and operations that have begun are awaited. Statements that are
still running on the server are rejected there (`storage.claims.begin_epoch`).
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, LiteralString
from uuid import UUID

from offing.core.errors import LeaseLostError
from offing.storage.pool import Connection, Database


class EpochDatabase(Database):
    """A view of a pool. The pool stays open."""

    def __init__(self, pool: Database) -> None:
        self._database = pool
        self._has_ended, self._open_count = False, 0
        self._idle = asyncio.Event()
        """Set while no operation is in progress."""
        self._idle.set()

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        """Open a transaction of the pool. Raises LeaseLostError if the epoch has ended."""
        with self._track_operation():
            async with self._database.transaction(tenant_id, pipelined=pipelined) as connection:
                yield connection

    async def call_function(self, query: LiteralString, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._track_operation():
            return await self._database.call_function(query, parameters)

    async def end(self) -> None:
        """End the epoch: reject new operations, and wait until all operations in progress have finished."""
        self._has_ended = True
        await self._idle.wait()

    @contextmanager
    def _track_operation(self) -> Generator[None]:
        if self._has_ended:
            raise LeaseLostError("This epoch of the claim has ended.")
        self._open_count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._open_count -= 1
            if not self._open_count:
                self._idle.set()
