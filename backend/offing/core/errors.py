"""Errors that Offing raises on purpose, one class per kind of failure.

OffingError
├── InvalidInput         a person or a client sent an unusable value; names the field and the fix
├── NotFound             the tenant has no such record
├── Conflict             the state of the record does not allow the operation
├── Unauthorized         no API key, session or permission for the request
├── LeaseLostError       the worker no longer owns the run; nothing that it writes counts
├── AlreadyRecordedError an append was committed, but its acknowledgment did not arrive
├── NonDeterminismError  a node that ran again made another call with a side effect than before
├── StateTooLargeError   a graph keeps content in its state instead of ids
└── Unavailable          a required server did not answer; a retry can help

Errors cross process boundaries, so each of them keeps all its data in `args`.
"""

from typing import ClassVar


class OffingError(Exception):
    """Base class of all errors that Offing raises on purpose. `code` is stable and public."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False


class InvalidInput(OffingError):
    """`InvalidInput(field, problem, remedy)`: the value of `field` cannot be used."""

    code = "invalid_input"

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(field, problem, remedy)
        self.field, self.problem, self.remedy = field, problem, remedy

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}. {self.remedy}"


class NotFound(OffingError):
    """`NotFound(noun, id)`: the tenant has no such record."""

    code = "not_found"

    def __init__(self, noun: str, id: str) -> None:
        super().__init__(noun, id)
        self.noun, self.id = noun, id

    def __str__(self) -> str:
        return f"There is no {self.noun} {self.id}."


class Conflict(OffingError):
    """`Conflict(problem, remedy)`: the current state of the record does not allow the operation."""

    code = "conflict"

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


class Unauthorized(OffingError):
    """The request has no valid API key or session."""

    code = "unauthorized"


class LeaseLostError(OffingError):
    """Another worker has claimed the run, or the run has ended. The slice must end without another write."""

    code = "lease_lost"


class AlreadyRecordedError(OffingError):
    """The call key already has a step.

    An earlier append was committed, but its acknowledgment did not arrive.
    """

    code = "already_recorded"


class NonDeterminismError(OffingError):
    """A node that ran again made another call than before.

    The recorded calls may already have had their side effects.
    """

    code = "non_determinism"


class StateTooLargeError(OffingError):
    """The state of a graph is too large. State is for ids and counters; content belongs in steps."""

    code = "state_too_large"


class Unavailable(OffingError):
    """A required server did not answer."""

    code = "unavailable"
    retryable = True
