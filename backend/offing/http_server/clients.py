"""How many connections there are: all of them, and those of each address that are in the middle of a request.

Behind a proxy every client has the proxy's address, so the limit for an address closes the oldest connection that has
not said what it wants rather than turn new ones away.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

log = logging.getLogger("offing.http")

LOG_SECONDS = 60.0
"""The least time between two log lines of one kind: a flood of connections is no flood of lines."""


YOUNG_SECONDS = 1.0
"""A connection is not closed for another one before so long."""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What one process allows."""

    connections: int = 1000
    half_open: int = 100
    """Connections of one address in the middle of a request: its head or body has not arrived whole."""
    head_seconds: float = 10.0
    """From the first byte, or from connecting, until the headers are complete."""
    body_seconds: float = 20.0
    """A body may take so long, and a second more for each `body_rate` bytes that have arrived."""
    body_rate: int = 500
    write_seconds: float = 60.0
    """A client that takes no byte of an answer for so long is dropped."""


class Connection(Protocol):
    """One client's connection."""

    address: str

    def close_idle(self) -> bool:
        """Close it if its request has no complete head, or is answered. Whether it was closed."""
        ...


class Clients:
    """The connections of this process."""

    def __init__(self, limits: ClientLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._open: set[Connection] = set()
        self._half_open: dict[str, dict[Connection, float]] = {}
        self._reported: dict[str, tuple[float, int]] = {}

    def admit(self, connection: Connection) -> bool:
        """Count a connection. False: there are as many as are allowed, and none could be closed for it."""
        if len(self._open) >= self.limits.connections and not self._close_one(self._waiting()):
            self.report(f"refused: {self.limits.connections} connections are open, the maximum", connection.address)
            return False
        self._open.add(connection)
        return True

    def _waiting(self) -> list[Connection]:
        """Connections of all addresses that have had the time to send a request and have not, the oldest first."""
        return [one for of_address in self._half_open.values() for one in self._old(of_address)]

    def _old(self, of_address: Mapping[Connection, float]) -> list[Connection]:
        # Many are accepted at once before the first is read: the young ones have had no chance.
        return [one for one, since in of_address.items() if self._clock() - since >= YOUNG_SECONDS]

    def _close_one(self, candidates: Sequence[Connection]) -> bool:
        return any(one.close_idle() for one in candidates)

    def leave(self, connection: Connection) -> None:
        """Forget a connection."""
        self._open.discard(connection)
        self.completed(connection)

    def began(self, connection: Connection) -> bool:
        """Note that a request has begun to arrive. False: its address has too many, and none could be closed."""
        waiting = self._old(self._half_open.get(connection.address, {}))
        if len(waiting) >= self.limits.half_open and connection not in waiting:
            self.report(f"closed: {self.limits.half_open} unfinished requests of one address", connection.address)
            if not self._close_one(waiting):
                return False
        self._half_open.setdefault(connection.address, {})[connection] = self._clock()
        return True

    def completed(self, connection: Connection) -> None:
        """Note that a request has arrived whole, or never will."""
        of_address = self._half_open.get(connection.address)
        if of_address is not None:
            of_address.pop(connection, None)
            if not of_address:
                del self._half_open[connection.address]

    def report(self, what: str, address: str) -> None:
        """Log what was done to a connection: at once, and then at most once a minute for each kind, with the count."""
        since, count = self._reported.get(what, (-LOG_SECONDS, 0))
        now = self._clock()
        if now - since < LOG_SECONDS:
            self._reported[what] = (since, count + 1)
            return
        more = f", and {count} more like it since the last such line" if count else ""
        log.warning("connection of %s %s%s", address or "a local socket", what, more)
        self._reported[what] = (now, 0)
