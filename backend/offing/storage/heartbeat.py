"""Renewal of leases over a separate connection, so that a busy pool never costs a lease."""

from collections.abc import Sequence

import psycopg

from offing.core.errors import Unavailable
from offing.core.run import FencingToken
from offing.storage.claims import RENEW_LEASES
from offing.storage.pool import KEEPALIVE_OPTIONS
from offing.storage.runs import ControlRequest, control_request_from_row

RELEASE_LEASES = "select app.release_leases(%s)"

CONNECTION_OPTIONS = "-c statement_timeout=3000 -c search_path=app"


def release_leases(url: str, worker: str) -> int:
    """Expire the leases of a process that has ended, and return their number.

    Its runs and jobs can then be claimed at once. Call it only if the process has certainly
    ended; a live process would lose its claims. Raises `Unavailable`.
    """
    try:
        with psycopg.connect(url, autocommit=True, options=CONNECTION_OPTIONS, **KEEPALIVE_OPTIONS) as connection:
            row = connection.execute(RELEASE_LEASES, (worker,)).fetchone()
    except psycopg.OperationalError as error:
        raise Unavailable(f"Postgres did not answer: {type(error).__name__}") from error
    assert row is not None
    return row[0]


class HeartbeatConnection:
    """A connection that renews the leases of all runs of a process with one statement.

    It is used from a single thread.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None

    def renew_leases(self, fences: Sequence[FencingToken], lease_seconds: float) -> list[ControlRequest]:
        """Renew leases for `lease_seconds`.

        A run that is missing from the result is no longer claimed by this process. Raises
        `Unavailable` if Postgres is unavailable; the next call reconnects.
        """
        parameters = ([f.run_id for f in fences], [f.number for f in fences], f"{lease_seconds} seconds")
        try:
            rows = self._get_connection().execute(RENEW_LEASES, parameters).fetchall()
        except psycopg.OperationalError as error:
            self.close()
            raise Unavailable(f"Postgres did not answer: {type(error).__name__}") from error
        return [control_request_from_row(row) for row in rows]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _get_connection(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._url, autocommit=True, options=CONNECTION_OPTIONS, **KEEPALIVE_OPTIONS
            )
        return self._connection
