"""What transactions assume instead of reading it first, because it is so for nearly all tenants.

A statement of the transaction divides by zero where the assumption is wrong, so that the commit that was sent with it
has no effect. A process remembers where that happened, and reads it there from then on.
"""

from collections.abc import Generator
from contextlib import contextmanager
from uuid import UUID

from psycopg.errors import DivisionByZero

from offing.core.errors import OffingError

MAX_EXCEPTIONS = 10_000
"""Number of exceptions that are remembered at most. Then all are forgotten, and found again."""


class WrongAssumptionError(OffingError):
    """`WrongAssumptionError(id)`: the transaction assumed what is not so about this record, and had no effect."""


class Assumptions:
    """The exceptions that a process knows, by tenant and record. An exception that has ended only costs time."""

    def __init__(self) -> None:
        self._exceptions = set[tuple[UUID, UUID]]()

    def may_hold(self, tenant_id: UUID, id: UUID) -> bool:
        """Return whether no exception is known."""
        return (tenant_id, id) not in self._exceptions

    def forget(self, tenant_id: UUID, id: UUID) -> None:
        """Forget an exception, because the assumption holds again."""
        self._exceptions.discard((tenant_id, id))

    @contextmanager
    def check(self, tenant_id: UUID, id: UUID) -> Generator[None]:
        """Raise WrongAssumptionError if the check of a transaction inside fails, and remember the exception."""
        try:
            yield
        except DivisionByZero as error:
            if len(self._exceptions) >= MAX_EXCEPTIONS:
                self._exceptions.clear()
            self._exceptions.add((tenant_id, id))
            raise WrongAssumptionError(str(id)) from error
