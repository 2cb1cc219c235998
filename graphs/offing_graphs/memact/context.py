"""The algebra of a context that its own agent edits: the only home of what prune and write do to a list of records.

Pure, and blind to what records say. The system text and the question are no records, so nothing can remove them.
Source of the rules: "Memory as Action" (arXiv 2510.12635), where one action prunes and writes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

PRUNE, WRITE = "prune", "write"
EDITS = (PRUNE, WRITE)
"""Names of the memory actions, called like tools."""

_ID = re.compile(r"r[1-9][0-9]*")


class Addressed(Protocol):
    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Addressed)


@dataclass(frozen=True, slots=True)
class Edited(Generic[R]):
    """A context after an edit; the record of the edit itself comes behind it, whatever the outcome."""

    context: tuple[R, ...]
    ok: bool
    """False: nothing was changed."""
    deleted: tuple[str, ...]
    unknown: tuple[str, ...]
    """Ids that were given and are no record of the context."""
    said: str
    """The outcome in a sentence, for the agent."""

    @property
    def splits(self) -> bool:
        """What the agent sees is no longer what it saw with something behind it."""
        return bool(self.deleted)


def record_id(turn: int) -> str:
    """The id of the record that a turn leaves."""
    return f"r{turn}"


def turn_of(id: str) -> int:
    """The turn that left a record. 0: this is no record's id."""
    return int(id[1:]) if _ID.fullmatch(id) else 0


def edited(context: Sequence[R], op: str, delete: Sequence[str] = (), note: str = "") -> Edited[R]:
    """The context without the records named in `delete`. `note` is kept by the edit's own record.

    Fails, and changes nothing, when prune names no record that is there, and when write has nothing to note.
    """
    if op == WRITE:
        delete = ()
    known = {record.id for record in context}
    deleted = tuple(dict.fromkeys(id for id in delete if id in known))
    unknown = tuple(dict.fromkeys(id for id in delete if id not in known))
    ok = bool(deleted) if op == PRUNE else bool(note.strip())
    gone = frozenset(deleted)
    kept = tuple(record for record in context if record.id not in gone)
    return Edited(kept, ok, deleted, unknown, _said(op, ok, deleted, unknown, note))


def _said(op: str, ok: bool, deleted: Sequence[str], unknown: Sequence[str], note: str) -> str:
    strangers = f" There is no record {', '.join(unknown[:8])}." if unknown else ""
    if not ok:
        need = "name records to remove by their ids, such as r1" if op == PRUNE else "give a note"
        return f"Nothing was changed: {need}.{strangers}"
    removed = f"Removed {', '.join(deleted)}." if deleted else ""
    noted = "The note is kept in this record." if note.strip() else ""
    return " ".join(part for part in (removed, noted) if part) + strangers
