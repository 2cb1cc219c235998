"""What a run may know of its thread's earlier runs: sentences of their reports, and notes that graphs left.

Both were made from documents, and are untrusted.
"""

from dataclasses import dataclass
from uuid import UUID

CONVERSATION, NOTES = "conversation", "notes"
"""The tools that the steps of both look-ups name. Nobody can call them."""

LONGEST_NOTE = 4_000
"""Code points of a note; what is longer is cut."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A sentence of an earlier report of the thread."""

    run: UUID
    question: str
    """What that run was asked."""
    text: str
    evidence: tuple[str, ...] = ()
    """Ids, in this run, of what the sentence quotes: it may be cited again. Empty: nothing."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a graph left for the thread's later runs under a key; the latest run to write there counts."""

    key: str
    text: str
    run: UUID
    """Who left it."""
