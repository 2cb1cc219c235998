"""Leases over a connection of their own, apart from the pool, so that a busy pool never costs one."""

from collections.abc import Sequence

import psycopg

from offing.core.errors import Unavailable
from offing.core.run import Fence
from offing.storage.pool import KEEPALIVE
from offing.storage.runs import HEARTBEAT, Wish, wish_of

RELEASE_LEASES = "select app.release_leases(%s)"

OPTIONS = "-c statement_timeout=3000 -c search_path=app"


def release_leases(url: str, worker: str) -> int:
    """Let the runs and jobs of a process that has ended be claimed at once. How many they are.

    Only for a process that is known to be gone: one that lives would lose them to others. Raises Unavailable.
    """
    try:
        with psycopg.connect(url, autocommit=True, options=OPTIONS, **KEEPALIVE) as connection:
            row = connection.execute(RELEASE_LEASES, (worker,)).fetchone()
    except psycopg.OperationalError as error:
        raise Unavailable(f"Postgres did not answer: {type(error).__name__}") from error
    assert row is not None
    return row[0]


class HeartbeatConnection:
    """One statement for all runs of a process. Used from a single thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None

    def beat(self, held: Sequence[Fence], term: float) -> list[Wish]:
        """Renew leases of `term` seconds; a run that is missing from the answer is no longer ours.

        Raises Unavailable while Postgres is away; the next call connects anew.
        """
        parameters = ([f.run for f in held], [f.number for f in held], f"{term} seconds")
        try:
            rows = self._connected().execute(HEARTBEAT, parameters).fetchall()
        except psycopg.OperationalError as error:
            self.close()
            raise Unavailable(f"Postgres did not answer: {type(error).__name__}") from error
        return [wish_of(row) for row in rows]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = psycopg.connect(self._url, autocommit=True, options=OPTIONS, **KEEPALIVE)
        return self._connection
