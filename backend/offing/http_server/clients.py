"""Limits on the number of connections: in total, and per address with an incomplete request.

Behind a proxy every client has the proxy's address. So at the limit of an address, the oldest
connection without a complete request is closed, instead of a new one being rejected.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

log = logging.getLogger("offing.http")

LOG_INTERVAL_SECONDS = 60.0
"""Minimum time between two log lines of one kind, so that a flood of connections does not flood the
log.
"""


MIN_WAIT_SECONDS = 1.0
"""Minimum age at which a connection may be closed to admit another one."""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of one server process."""

    max_connections: int = 1000
    max_half_open: int = 100
    """Maximum number of connections of one address whose request has not arrived completely."""
    head_timeout_seconds: float = 10.0
    """Maximum time from the first byte, or from connecting, until the headers are complete."""
    body_timeout_seconds: float = 20.0
    """Maximum time for a body, plus one second per `min_body_bytes_per_second` bytes that have arrived."""
    min_body_bytes_per_second: int = 500
    write_timeout_seconds: float = 60.0
    """Maximum time in which a client reads no byte of a response. Then the connection is closed."""


class Connection(Protocol):
    """Connection of one client."""

    address: str

    def close_idle(self) -> bool:
        """Close the connection if its request has no complete head or is answered.

        Return whether it was closed.
        """
        ...


class ClientRegistry:
    """Registry of the connections of this process."""

    def __init__(self, limits: ClientLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._open: set[Connection] = set()
        self._half_open: dict[str, dict[Connection, float]] = {}
        self._reported: dict[str, tuple[float, int]] = {}

    def admit(self, connection: Connection) -> bool:
        """Count a new connection.

        Return False if the limit is reached and no other connection could be closed.
        """
        if len(self._open) >= self.limits.max_connections and not self._close_one(self._list_waiting()):
            self.log_action(
                f"rejected: {self.limits.max_connections} connections are open, the maximum", connection.address
            )
            return False
        self._open.add(connection)
        return True

    def _list_waiting(self) -> list[Connection]:
        """List connections of all addresses that had time to send a request and have not, oldest first."""
        return [one for of_address in self._half_open.values() for one in self._list_closable(of_address)]

    def _list_closable(self, of_address: Mapping[Connection, float]) -> list[Connection]:
        # Many connections are accepted before the first is read, so new ones have had no chance to send.
        return [one for one, since in of_address.items() if self._clock() - since >= MIN_WAIT_SECONDS]

    def _close_one(self, candidates: Sequence[Connection]) -> bool:
        return any(one.close_idle() for one in candidates)

    def remove(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        self._open.discard(connection)
        self.request_ended(connection)

    def request_started(self, connection: Connection) -> bool:
        """Record the start of a request. Return False if its address has too many and none could be closed."""
        waiting = self._list_closable(self._half_open.get(connection.address, {}))
        if len(waiting) >= self.limits.max_half_open and connection not in waiting:
            self.log_action(
                f"closed: {self.limits.max_half_open} unfinished requests from one address", connection.address
            )
            if not self._close_one(waiting):
                return False
        self._half_open.setdefault(connection.address, {})[connection] = self._clock()
        return True

    def request_ended(self, connection: Connection) -> None:
        """Record that a request has arrived completely or will never do so."""
        of_address = self._half_open.get(connection.address)
        if of_address is not None:
            of_address.pop(connection, None)
            if not of_address:
                del self._half_open[connection.address]

    def log_action(self, action: str, address: str) -> None:
        """Log an action on a connection, at most once per minute and kind, with the count since the last line."""
        since, count = self._reported.get(action, (-LOG_INTERVAL_SECONDS, 0))
        now = self._clock()
        if now - since < LOG_INTERVAL_SECONDS:
            self._reported[action] = (since, count + 1)
            return
        more = f", and {count} more since the last such line" if count else ""
        log.warning("connection of %s %s%s", address or "a local socket", action, more)
        self._reported[action] = (now, 0)
