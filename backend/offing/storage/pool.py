"""Connections of the application's role, and the only way to open a transaction: for one tenant.

Knows no table. A transaction names its tenant before anything else, so row-level security shows that tenant's rows
alone; the name ends with the transaction, so no pooled connection carries it over.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, LiteralString, Self
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import IdleInTransactionSessionTimeout
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from offing.core.errors import OffingError, Unavailable
from offing.finishing import finished
from offing.storage.connection_queue import ConnectionQueue, low_priority

CHECK_AFTER = 1.0
"""Seconds of rest after which a pooled connection is asked whether it still stands, before it is lent out."""

SESSION = "-c statement_timeout=15000 -c lock_timeout=5000 -c search_path=app -c jit=off"

KEEPALIVE: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Seconds, but the last in milliseconds: a cut network is noticed within a lease."""

Connection = AsyncConnection[TupleRow]


class _Pooled(AsyncConnection[TupleRow]):
    """A connection that knows when it was last in use."""

    used_at: float = 0.0


class Database:
    """The application's pool. Open it inside the event loop that uses it, after any fork.

    `wait_seconds`: how long Postgres may take to give a connection. `queue_seconds`: how long a transaction may wait
    for others of this process; None: as long as it takes. `stall_seconds`: a process that stands still inside a
    transaction for so long loses it, and the locks with it.
    """

    def __init__(
        self,
        url: str,
        *,
        most: int = 16,
        wait_seconds: float = 15.0,
        queue_seconds: float | None = 15.0,
        stall_seconds: float = 30.0,
    ) -> None:
        session = f"{SESSION} -c idle_in_transaction_session_timeout={round(stall_seconds * 1000)}"
        self._queue, self._queue_seconds = ConnectionQueue(most), queue_seconds
        self._giving = set[asyncio.Future[None]]()
        self._pool = AsyncConnectionPool[_Pooled](
            url,
            connection_class=_Pooled,
            min_size=1,
            max_size=most,
            timeout=wait_seconds,
            max_lifetime=1800,
            check=_check,
            kwargs={"autocommit": True, "options": session, "row_factory": tuple_row, **KEEPALIVE},
            open=False,
        )

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def transaction(self, tenant: UUID) -> AsyncGenerator[Connection]:
        """A transaction that sees and writes this tenant's rows only."""
        async with self._borrowed() as connection:
            await connection.execute(_begin(tenant))
            try:
                yield connection
            except BaseException:
                await _roll_back(connection)
                raise
            # To its end: cut off, it may be carried out all the same, and nobody would know.
            if (await finished(connection.execute("commit"))).statusmessage != "COMMIT":
                raise OffingError("A statement failed inside the transaction and its error was swallowed.")

    async def platform(self, query: LiteralString, parameters: Sequence[Any]) -> list[TupleRow]:
        """Call one of the platform's own functions, which serve all tenants; rows of tables stay unseen."""
        async with self._borrowed() as connection:
            return await (await connection.execute(query, parameters)).fetchall()

    @asynccontextmanager
    async def _borrowed(self) -> AsyncGenerator[Connection]:
        low = low_priority.get()
        await self._admitted(low)
        try:
            connection = await self._taken()
            try:
                yield connection
            finally:
                connection.used_at = time.monotonic()
                await finished(self._pool.putconn(connection))
        except (PoolTimeout, psycopg.OperationalError, IdleInTransactionSessionTimeout) as error:
            raise Unavailable(f"Postgres did not answer: {type(error).__name__}") from error
        finally:
            self._queue.release(low)

    async def _admitted(self, low: bool) -> None:
        """Wait for one of the connections to be free; here, so that no cancellation strikes who waits in the pool."""
        try:
            async with asyncio.timeout(self._queue_seconds):
                await self._queue.acquire(low)
        except TimeoutError as error:
            raise Unavailable("Postgres did not answer: too much waits for it") from error

    async def _taken(self) -> _Pooled:
        """A connection. Cancelled meanwhile, it goes back by itself."""
        taking = asyncio.ensure_future(self._pool.getconn())
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._given_back)
            raise

    def _given_back(self, taking: asyncio.Future[_Pooled]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            giving = asyncio.ensure_future(self._pool.putconn(taking.result()))
            self._giving.add(giving)
            giving.add_done_callback(self._giving.discard)


def _begin(tenant: UUID) -> bytes:
    """Begin and name the tenant in one round trip; a UUID's text needs no quoting."""
    return f"begin; set local app.tenant = '{tenant}'".encode()


async def _roll_back(connection: Connection) -> None:
    # A connection that cannot even roll back is broken; the pool discards it, and the first error says more.
    with suppress(psycopg.OperationalError):
        await finished(connection.execute("rollback"))


async def _check(connection: _Pooled) -> None:
    if time.monotonic() - connection.used_at > CHECK_AFTER:
        await AsyncConnectionPool.check_connection(connection)
