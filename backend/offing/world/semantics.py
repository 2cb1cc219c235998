"""What every world has in common: kinds of things, relations between them, and which tool answers which relation.

The only home of the tools' hidden semantics. They are the same in every world, training and held-out, because they are
what is learned there. Knows no entity and no fact.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    PERSON = "person"
    TOWN = "town"
    GUILD = "guild"
    BOOK = "book"
    YEAR = "year"
    METRES = "metres"


NUMBERS = frozenset({Kind.YEAR, Kind.METRES})
"""Kinds whose values are whole numbers in decimal digits; all others are entities."""


@dataclass(frozen=True, slots=True)
class Relation:
    """What can be asked of an entity of kind `subject`; its values are of kind `value`."""

    name: str
    subject: Kind
    value: Kind
    many: bool = False
    """True: any number of values, none included. False: one value, or not recorded."""

    @property
    def numeric(self) -> bool:
        return self.value in NUMBERS


RELATION_TABLE = (
    Relation("teacher", Kind.PERSON, Kind.PERSON),
    Relation("home", Kind.PERSON, Kind.TOWN),
    Relation("guild", Kind.PERSON, Kind.GUILD),
    Relation("master", Kind.GUILD, Kind.PERSON),
    Relation("seat", Kind.GUILD, Kind.TOWN),
    Relation("founder", Kind.TOWN, Kind.PERSON),
    Relation("twin", Kind.TOWN, Kind.TOWN),
    Relation("author", Kind.BOOK, Kind.PERSON),
    Relation("members", Kind.GUILD, Kind.PERSON, many=True),
    Relation("works", Kind.PERSON, Kind.BOOK, many=True),
    Relation("born", Kind.PERSON, Kind.YEAR),
    Relation("elevation", Kind.TOWN, Kind.METRES),
)

RELATIONS: tuple[str, ...] = tuple(r.name for r in RELATION_TABLE)

BY_NAME: dict[str, Relation] = {r.name: r for r in RELATION_TABLE}

TOOLS: tuple[str, ...] = ("amber", "birch", "cobalt", "delta", "ember", "flint")
"""Names without a meaning, so that only use can tell what they are good for."""

ANSWERED_BY: dict[str, tuple[str, ...]] = {
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
"""Hidden from agents: the tools that answer a relation; every other tool answers it with nothing, or misleads."""
