"""Memory of a thread: sentences of its earlier reports, and notes that graphs saved.

Both are made from documents and are untrusted.
"""

from dataclasses import dataclass
from uuid import UUID

THREAD_SEARCH, THREAD_NOTES = "conversation", "notes"
"""Tool names in the steps of both lookups. They cannot be called."""

MAX_NOTE_CHARS = 4_000
"""Maximum number of code points of a note. A longer one is cut."""


@dataclass(frozen=True, slots=True)
class ThreadFinding:
    """A sentence of an earlier report of the thread."""

    run_id: UUID
    question: str
    """Question of that run."""
    text: str
    evidence: tuple[str, ...] = ()
    """Ids, in this run, of the passages that the sentence quotes, so that it can be cited again.

    Empty means none.
    """


@dataclass(frozen=True, slots=True)
class ThreadNote:
    """A note that a graph saved under a key for the thread's later runs. The latest run to save one wins."""

    key: str
    text: str
    run_id: UUID
    """Id of the run that saved the note."""
