"""Connection pool of the application's role. Every transaction belongs to one tenant.

A transaction sets its tenant before anything else, so row-level security shows only that
tenant's rows. The setting ends with the transaction, so it never leaks to the next user of a
pooled connection.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, LiteralString, Self, TypeVar
from uuid import UUID

import orjson
import psycopg
from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected, IdleInTransactionSessionTimeout
from psycopg.rows import TupleRow, tuple_row
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from offing.cancellation import run_to_completion
from offing.core.errors import OffingError, Unavailable
from offing.storage.assumptions import Assumptions
from offing.storage.buffered_pipeline import open_pipeline
from offing.storage.connection_queue import ConnectionQueue, low_priority
from offing.storage.fencing_sql import lease_errors

CHECK_AFTER_SECONDS = 1.0
"""A pooled connection that was idle for longer than this is checked before it is used."""

SESSION_OPTIONS = "-c statement_timeout=15000 -c lock_timeout=5000 -c search_path=app -c jit=off"

KEEPALIVE_OPTIONS: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""In seconds, except the last, which is in milliseconds. A network failure is noticed before a lease
expires.
"""

T = TypeVar("T")

MAX_REPEATS = 3
"""Number of times that a transaction is done again after a deadlock."""

log = logging.getLogger(__name__)

Connection = AsyncConnection[TupleRow]


class Deadlocked(Unavailable):
    """Postgres rolled the transaction back, because it and another one waited for each other."""


async def repeat_deadlocked(work: Callable[[], Awaitable[T]]) -> T:
    """Do work of one transaction again while Postgres rolls it back because of a deadlock, at most `MAX_REPEATS` times.

    Raises Deadlocked after that.
    """
    for _ in range(MAX_REPEATS):
        try:
            return await work()
        except Deadlocked:
            log.info("a transaction is done again after a deadlock")
    return await work()


class _PooledConnection(AsyncConnection[TupleRow]):
    """A connection with the time of its last use."""

    used_at: float = 0.0


class Database:
    """The connection pool of the application.

    Open it in the event loop that uses it, after any fork. `wait_seconds` is the maximum time
    that Postgres may take to open a connection. `queue_seconds` is the maximum time that a
    transaction waits for others of this process; `None` means no limit. A process that is idle
    inside a transaction for `stall_seconds` loses the transaction and its locks.
    """

    def __init__(
        self,
        url: str,
        *,
        max_connections: int = 16,
        wait_seconds: float = 15.0,
        queue_seconds: float | None = 15.0,
        stall_seconds: float = 30.0,
    ) -> None:
        session = f"{SESSION_OPTIONS} -c idle_in_transaction_session_timeout={round(stall_seconds * 1000)}"
        self.assumptions = Assumptions()
        """What transactions of this process may assume."""
        self._queue, self._queue_seconds = ConnectionQueue(max_connections), queue_seconds
        self._returning = set[asyncio.Future[None]]()
        self._pool = AsyncConnectionPool[_PooledConnection](
            url,
            connection_class=_PooledConnection,
            min_size=1,
            max_size=max_connections,
            timeout=wait_seconds,
            max_lifetime=1800,
            configure=_configure_connection,
            check=_check_connection,
            kwargs={"autocommit": True, "options": session, "row_factory": tuple_row, **KEEPALIVE_OPTIONS},
            open=False,
        )

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        """Open a transaction that reads and writes only this tenant's rows.

        If it is `pipelined`, statements are kept until a result is fetched or the transaction ends, and then sent
        together. The error of a statement is raised by that fetch or by the commit, which then has no effect. Raises
        LeaseLostError if a statement of a claim finds that the claim is lost.
        """
        begin = _begin_pipeline if pipelined else _begin
        async with self._borrow_connection() as connection, AsyncExitStack() as pipeline:
            with lease_errors():
                try:
                    await begin(connection, pipeline, tenant_id)
                    yield connection
                except BaseException as error:
                    await run_to_completion(_roll_back(connection, pipeline, error, pipelined=pipelined))
                    raise
                # It runs to its end, because an interrupted statement may still be executed without a response.
                if await run_to_completion(_commit(connection, pipeline, pipelined=pipelined)) != "COMMIT":
                    raise OffingError("A statement failed inside the transaction and its error was swallowed.")

    async def call_function(self, query: LiteralString, parameters: Sequence[Any]) -> list[TupleRow]:
        """Call a database function of the platform, which serves all tenants.

        Table rows cannot be read this way.
        """
        async with self._borrow_connection() as connection:
            return await (await connection.execute(query, parameters)).fetchall()

    @asynccontextmanager
    async def _borrow_connection(self) -> AsyncGenerator[Connection]:
        low = low_priority.get()
        await self._wait_for_slot(low)
        try:
            connection = await self._take_connection()
            try:
                yield connection
            finally:
                connection.used_at = time.monotonic()
                await run_to_completion(self._pool.putconn(connection))
        except DeadlockDetected as error:
            raise Deadlocked(
                "Postgres did not answer: the transaction and another one waited for each other"
            ) from error
        except (PoolTimeout, psycopg.OperationalError, IdleInTransactionSessionTimeout) as error:
            raise Unavailable(f"Postgres did not answer: {type(error).__name__}") from error
        finally:
            self._queue.release(low)

    async def _wait_for_slot(self, is_low_priority: bool) -> None:
        """Wait for a free connection.

        Waiting here instead of in the pool makes cancellation safe.
        """
        try:
            async with asyncio.timeout(self._queue_seconds):
                await self._queue.acquire(is_low_priority)
        except TimeoutError as error:
            raise Unavailable("Postgres did not answer: too many requests wait for a connection") from error

    async def _take_connection(self) -> _PooledConnection:
        """Take a connection from the pool.

        If the task is cancelled meanwhile, the connection is returned.
        """
        taking = asyncio.ensure_future(self._pool.getconn())
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._return_connection)
            raise

    def _return_connection(self, pending: asyncio.Future[_PooledConnection]) -> None:
        if not pending.cancelled() and pending.exception() is None:
            giving = asyncio.ensure_future(self._pool.putconn(pending.result()))
            self._returning.add(giving)
            giving.add_done_callback(self._returning.discard)


def _set_tenant(tenant_id: UUID) -> bytes:
    """Return the statement that sets the tenant of a transaction. The text of a UUID needs no quoting."""
    return f"set local app.tenant = '{tenant_id}'".encode()


async def _begin(connection: Connection, _: AsyncExitStack, tenant_id: UUID) -> None:
    """Begin a transaction and set its tenant in one round trip."""
    await connection.execute(b"begin; " + _set_tenant(tenant_id))


async def _begin_pipeline(connection: Connection, pipeline: AsyncExitStack, tenant_id: UUID) -> None:
    """Begin a transaction and set its tenant without waiting. `pipeline` ends the pipeline."""
    opened = await pipeline.enter_async_context(open_pipeline(connection))
    opened.add_command(b"begin")
    opened.add_command(_set_tenant(tenant_id))


async def _commit(connection: Connection, pipeline: AsyncExitStack, *, pipelined: bool) -> str | None:
    """Commit, wait for all results, and return what Postgres did."""
    try:
        commit = await connection.execute("commit")
        await pipeline.aclose()
    except BaseException as error:
        await _roll_back(connection, pipeline, error, pipelined=pipelined)
        raise
    return commit.statusmessage


async def _roll_back(
    connection: Connection, pipeline: AsyncExitStack, error: BaseException, *, pipelined: bool
) -> None:
    """Roll back after an error. After a failed statement of a pipeline, also close the connection.

    Postgres skips the statements that follow a failed one in a pipeline. psycopg may have counted one of them as
    prepared, and every later use of it on this connection would fail.
    """
    has_failed = any(isinstance(one, psycopg.Error | asyncio.CancelledError) for one in (error, error.__cause__))
    try:
        await pipeline.aclose()
    except psycopg.Error:
        has_failed = True
    # If even the rollback fails, the pool discards the connection; the first error says more.
    with suppress(psycopg.Error):
        await connection.execute("rollback")
    if pipelined and has_failed:
        await connection.close()


async def _configure_connection(connection: _PooledConnection) -> None:
    """Parse JSON with orjson, which wrote it. It takes an eighth of the time of Python's own parser."""
    set_json_loads(orjson.loads, connection)


async def _check_connection(connection: _PooledConnection) -> None:
    if time.monotonic() - connection.used_at > CHECK_AFTER_SECONDS:
        await AsyncConnectionPool.check_connection(connection)
