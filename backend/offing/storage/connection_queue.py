"""Which transaction of a process gets the next database connection: interactive work goes before work that can wait.

Knows no connection, and of the work only its priority.
"""

import asyncio
from collections import deque
from contextvars import ContextVar

low_priority: ContextVar[bool] = ContextVar("low_priority", default=False)
"""Set in the context of work that nobody waits for, such as a slice of a rollout. Tasks that it starts inherit it."""

LOW_EVERY = 4
"""While both kinds wait, one of so many connections goes to work of low priority: it is slowed, and never stopped."""


class ConnectionQueue:
    """Admits as many transactions as there are connections. Those of low priority never take the last quarter.

    For one event loop.
    """

    def __init__(self, most: int) -> None:
        self._free, self._free_for_low = most, most - most // 4
        self._normal, self._low = deque[asyncio.Future[None]](), deque[asyncio.Future[None]]()
        self._contested = 0

    async def acquire(self, low: bool) -> None:
        """Wait for a connection to be free. `low`: for work of low priority."""
        waiter = asyncio.get_running_loop().create_future()
        (self._low if low else self._normal).append(waiter)
        self._admit()
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self.release(low)  # it was admitted in the same moment
            raise

    def release(self, low: bool) -> None:
        """Give back what was acquired with the same `low`."""
        self._free += 1
        self._free_for_low += low
        self._admit()

    def _admit(self) -> None:
        while self._free and (queue := self._next()) is not None:
            waiter = queue.popleft()
            if not waiter.done():
                low = queue is self._low
                self._free, self._free_for_low = self._free - 1, self._free_for_low - low
                waiter.set_result(None)

    def _next(self) -> "deque[asyncio.Future[None]] | None":
        """Where the next to be admitted waits. None: nobody waits, or none that may."""
        low = self._low if self._low and self._free_for_low else None
        if not self._normal:
            return low
        if low is None:
            return self._normal
        self._contested += 1
        return self._normal if self._contested % LOW_EVERY else low
