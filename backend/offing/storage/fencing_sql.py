"""The fencing condition: SQL that decides whether a claim may write to its run.

Every statement of a claim that writes contains the condition, or follows such a statement in the
same transaction, which then holds the row's lock. No clock is involved: after its lease has
expired, a claim can still write until another worker claims the run.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from psycopg import DatabaseError

from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken

LEASE_LOST_SQLSTATE = "OF001"
"""The error of `app.assert_owned`."""

OWNS_RUN = "id = %(run)s and fence = %(fence)s and epoch = %(epoch)s and status = 'running'"
"""True if the claim and its epoch are the latest of the run and the run is being executed."""

LOCK_OWNED_RUN = f"select 1 from run where {OWNS_RUN} for share"
"""For statements that do not update the run: a new claim or epoch waits until their transaction
ends.
"""


ASSERT_OWNED = "app.assert_owned(exists (select from guard))"
"""Fails if `guard`, a common table expression with the fencing condition, has no row. The transaction is then rolled
back, even if its commit was already sent.
"""


@contextmanager
def lease_errors() -> Generator[None]:
    """Raise LeaseLostError for the error of `ASSERT_OWNED`.

    In a pipelined transaction, the error of a statement is raised by a later statement or by the commit.
    """
    try:
        yield
    except DatabaseError as error:
        if error.sqlstate != LEASE_LOST_SQLSTATE:
            raise
        raise LeaseLostError(error.diag.message_primary) from error


def fence_parameters(fence: FencingToken) -> dict[str, Any]:
    """Return the parameters of `OWNS_RUN`."""
    return {"run": fence.run_id, "fence": fence.number, "epoch": fence.epoch}
