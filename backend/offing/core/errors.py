"""What can go wrong on purpose. The class names the boundary that was crossed.

OffingError
├── InvalidInput      a person or a client sent something unusable; says which field and what to do
├── NotFound          no such record for this tenant
├── Conflict          the record is in a state that does not allow this
├── Unauthorised      no key, session or right for this
├── Fenced            this worker no longer owns the run; nothing it writes counts
├── AlreadyRecorded   an append whose answer was lost had been committed
├── NonDeterminismError  a node that was run again asked for another call with a side effect than those recorded
├── StateTooLarge     a graph keeps content in its state instead of ids
└── Unavailable       a server we depend on did not answer; trying again can help

Errors cross process borders, so each keeps everything in `args`.
"""

from typing import ClassVar


class OffingError(Exception):
    """Anything raised on purpose. `code` is stable and public."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False


class InvalidInput(OffingError):
    """`InvalidInput(field, problem, remedy)`: what was sent in `field` cannot be used."""

    code = "invalid_input"

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(field, problem, remedy)
        self.field, self.problem, self.remedy = field, problem, remedy

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}. {self.remedy}"


class NotFound(OffingError):
    """`NotFound(noun, id)`: this tenant has no such record."""

    code = "not_found"

    def __init__(self, noun: str, id: str) -> None:
        super().__init__(noun, id)
        self.noun, self.id = noun, id

    def __str__(self) -> str:
        return f"There is no {self.noun} {self.id}."


class Conflict(OffingError):
    """`Conflict(problem, remedy)`: the record's present state does not allow this."""

    code = "conflict"

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


class Unauthorised(OffingError):
    """No usable key or session came with the request."""

    code = "unauthorised"


class Fenced(OffingError):
    """Another worker has claimed the run, or it has ended; the slice must end without a further write."""

    code = "fenced"


class AlreadyRecorded(OffingError):
    """A call key has a step already: an append whose answer was lost had been committed."""

    code = "already_recorded"


class NonDeterminismError(OffingError):
    """A node that was run again asked for another call than those recorded, which may have had their effect."""

    code = "non_determinism"


class StateTooLarge(OffingError):
    """Graph state is for ids and counters; content belongs in steps."""

    code = "state_too_large"


class Unavailable(OffingError):
    """A server that we depend on gave no answer."""

    code = "unavailable"
    retryable = True
