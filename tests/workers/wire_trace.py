"""What a worker exchanges with Postgres, read from libpq's own trace of the connection."""

import re
import tempfile
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from psycopg import AsyncConnection
from psycopg.pq import Trace

from offing.storage.pool import Connection, Database

MESSAGE = re.compile(r"([FB])\t\d+\t(\w+)\t?(.*)")
"""A line of the trace. Statements of several lines continue in lines without a direction."""


ENDS = ("Sync", "Flush")
"""Messages after which the server sends its answers."""


@dataclass(frozen=True, slots=True)
class Trips:
    """What was exchanged."""

    transactions: int
    """Committed ones; a call outside a transaction is one."""
    round_trips: int
    """How often the client sent something and then waited for the answer."""
    statements: int
    """Including `begin` and `commit`."""


class TracedDatabase(Database):
    """Traces its connections. What the pool itself does with a connection is not counted."""

    def __init__(self, url: str, *, max_connections: int = 4) -> None:
        super().__init__(url, max_connections=max_connections)
        self.messages: list[str] = []
        """Each with its direction, F to the server and B back, its type and its content."""

    @asynccontextmanager
    async def _borrow_connection(self) -> AsyncGenerator[Connection]:
        async with super()._borrow_connection() as connection:
            with tempfile.TemporaryFile("w+") as file:
                _trace_into(connection, file.fileno())
                try:
                    yield connection
                finally:
                    connection.pgconn.untrace()
                    file.seek(0)
                    self.messages += file.read().splitlines()

    def take_trips(self) -> Trips:
        """Count what was exchanged since the last call."""
        messages, self.messages = self.messages, []
        return count_trips(messages)


def _trace_into(connection: AsyncConnection[tuple[object, ...]], descriptor: int) -> None:
    connection.pgconn.trace(descriptor)
    connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS | Trace.REGRESS_MODE)


def count_trips(messages: Iterable[str]) -> Trips:
    """Count transactions, round trips and statements in a trace.

    The client waits after a query of the simple protocol, after Sync and after Flush. The numbers do not depend on when
    the answers arrive.
    """
    waiting, trips, commits, alone, statements, in_transaction = False, 0, 0, 0, 0, False
    for direction, kind, content in (match.groups() for match in map(MESSAGE.match, messages) if match):
        if direction == "F":
            trips += kind == "Query" or (waiting and kind in ENDS)
            waiting = kind not in ("Query", *ENDS)
        elif kind == "CommandComplete":
            command = content.strip().strip('"')
            statements += 1
            commits += command == "COMMIT"
            alone += not in_transaction and command not in ("BEGIN", "COMMIT", "ROLLBACK")
            in_transaction = command == "BEGIN" or (in_transaction and command not in ("COMMIT", "ROLLBACK"))
    return Trips(commits + alone, trips, statements)
