"""The queue for the database connections of a process.

Interactive transactions come before those that can wait.
"""

import asyncio
from collections import deque
from contextvars import ContextVar

low_priority: ContextVar[bool] = ContextVar("low_priority", default=False)
"""Set in the context of work for which no person waits, such as a slice of a rollout. Tasks started in
it inherit the value.
"""

LOW_PRIORITY_INTERVAL = 4
"""While both kinds wait, one of this many connections goes to low priority, so that such work is
slowed but never blocked.
"""


class ConnectionQueue:
    """Admits as many transactions as there are connections.

    Transactions of low priority never use the last quarter of them. An object belongs to one
    event loop.
    """

    def __init__(self, max_connections: int) -> None:
        self._free, self._free_for_low = max_connections, max_connections - max_connections // 4
        self._normal, self._low = deque[asyncio.Future[None]](), deque[asyncio.Future[None]]()
        self._contested = 0

    async def acquire(self, is_low_priority: bool) -> None:
        """Wait for a free connection. `is_low_priority` must be true for work of low priority."""
        waiter = asyncio.get_running_loop().create_future()
        (self._low if is_low_priority else self._normal).append(waiter)
        self._admit_next()
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self.release(is_low_priority)  # it was admitted at the same moment
            raise

    def release(self, is_low_priority: bool) -> None:
        """Release a connection that was acquired with the same `is_low_priority`."""
        self._free += 1
        self._free_for_low += is_low_priority
        self._admit_next()

    def _admit_next(self) -> None:
        while self._free and (queue := self._find_next_queue()) is not None:
            waiter = queue.popleft()
            if not waiter.done():
                low = queue is self._low
                self._free, self._free_for_low = self._free - 1, self._free_for_low - low
                waiter.set_result(None)

    def _find_next_queue(self) -> "deque[asyncio.Future[None]] | None":
        """Return the queue from which the next transaction is admitted.

        `None` means that none is waiting or none may be admitted.
        """
        low = self._low if self._low and self._free_for_low else None
        if not self._normal:
            return low
        if low is None:
            return self._normal
        self._contested += 1
        return self._normal if self._contested % LOW_PRIORITY_INTERVAL else low
