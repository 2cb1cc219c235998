"""Kinds of entities, relations between them, and the tools that answer each relation.

They are the same in every world, training and held-out. Which tool answers which relation
is hidden from agents; it is what training is supposed to learn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class EntityKind(StrEnum):
    PERSON = "person"
    TOWN = "town"
    GUILD = "guild"
    BOOK = "book"
    YEAR = "year"
    METERS = "metres"


NUMERIC_KINDS = frozenset({EntityKind.YEAR, EntityKind.METERS})
"""Kinds whose values are whole numbers in decimal digits; all others are entities."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of entities of kind `subject` to values of kind `value`."""

    name: str
    subject: EntityKind
    value: EntityKind
    multi_valued: bool = False
    """True: any number of values, including none. False: one value, or none recorded."""

    @property
    def is_numeric(self) -> bool:
        return self.value in NUMERIC_KINDS


RELATION_TABLE = (
    Relation("teacher", EntityKind.PERSON, EntityKind.PERSON),
    Relation("home", EntityKind.PERSON, EntityKind.TOWN),
    Relation("guild", EntityKind.PERSON, EntityKind.GUILD),
    Relation("master", EntityKind.GUILD, EntityKind.PERSON),
    Relation("seat", EntityKind.GUILD, EntityKind.TOWN),
    Relation("founder", EntityKind.TOWN, EntityKind.PERSON),
    Relation("twin", EntityKind.TOWN, EntityKind.TOWN),
    Relation("author", EntityKind.BOOK, EntityKind.PERSON),
    Relation("members", EntityKind.GUILD, EntityKind.PERSON, multi_valued=True),
    Relation("works", EntityKind.PERSON, EntityKind.BOOK, multi_valued=True),
    Relation("born", EntityKind.PERSON, EntityKind.YEAR),
    Relation("elevation", EntityKind.TOWN, EntityKind.METERS),
)

RELATIONS: tuple[str, ...] = tuple(r.name for r in RELATION_TABLE)

RELATIONS_BY_NAME: dict[str, Relation] = {r.name: r for r in RELATION_TABLE}

TOOLS: tuple[str, ...] = ("amber", "birch", "cobalt", "delta", "ember", "flint")
"""Tool names without a meaning, so that an agent can learn only by use what a tool answers."""

TOOLS_BY_RELATION: dict[str, tuple[str, ...]] = {
    "teacher": ("birch",),
    "home": ("ember",),
    "guild": ("amber", "flint"),
    "master": ("cobalt",),
    "seat": ("birch", "delta"),
    "founder": ("delta",),
    "twin": ("flint",),
    "author": ("ember",),
    "members": ("delta",),
    "works": ("amber",),
    "born": ("cobalt",),
    "elevation": ("flint",),
}
"""Tools that answer each relation, hidden from agents.

Every other tool returns nothing or a misleading value.
"""

SHELF = "shelf"
"""The relation of an entity to its shelf, a number. Every tool of a world with the option `key` answers it.

It is not among `RELATIONS`, because no question asks for it.
"""
SHELVES = 3
"""Number of shelves."""
COMPACT_RELATIONS: tuple[str, ...] = (*RELATIONS, SHELF)
"""The relations that have a compact word, in the order of the words."""


def list_candidate_tools(relation: str, options: Sequence[str] = (), shelf: int = 0) -> tuple[str, ...]:
    """Return the tools that may answer a relation in a world with these options. This is hidden from agents.

    Without options, each of them answers. With `referral`, it is one of the two, by the entity. With `noise`, at most
    one of the three is wrong. `shelf` is that of the entity and counts only with the option `key`.
    """
    if {*options} <= {"outage"}:
        return TOOLS_BY_RELATION[relation]
    step = shelf * (1 + RELATIONS.index(relation) % 2) if "key" in options else 0
    first = TOOLS.index(TOOLS_BY_RELATION[relation][0]) + step
    offsets = (0, 3) if "referral" in options else (0, 1, 3) if "noise" in options else (0,)
    return tuple(TOOLS[(first + offset) % len(TOOLS)] for offset in offsets)
