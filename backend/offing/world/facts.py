"""A world: its entities and what is true of them, made from its name alone.

The only home of what is true. Documents, tools and questions tell it in their ways.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from random import Random

from offing.world.names import names
from offing.world.semantics import BY_NAME, RELATION_TABLE, Kind
from offing.world.spec import Spec, parse

KEPT_WORLDS = 8

SHARES = {Kind.TOWN: 0.20, Kind.GUILD: 0.15, Kind.BOOK: 0.20}
"""Of all entities; the rest are persons."""
UNRECORDED = 0.08
"""How often a relation with one value has none."""
MOST_VALUES = 6
"""Of a relation with many."""
YEARS, METRES = (600, 999), (3, 2_400)

INVERSES = {"guild": "members", "author": "works"}


@dataclass(frozen=True, slots=True)
class Plan:
    """How many documents of each sort a world has."""

    articles: int
    """One an entity, in the current register."""
    editions: int
    """Older editions of articles; superseded."""
    letters: int
    """Hearsay."""
    directories: int
    """Lists of several entities."""


def plan(documents: int) -> Plan:
    """How `documents` divide, one page about the archive itself apart."""
    editions, letters, directories = round(0.12 * documents), round(0.12 * documents), round(0.06 * documents)
    return Plan(documents - 1 - editions - letters - directories, editions, letters, directories)


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Entities in order, and the values of every relation that is recorded."""

    spec: Spec
    kinds: Mapping[str, Kind]
    members: Mapping[Kind, tuple[str, ...]]
    """Entities by kind."""
    facts: Mapping[tuple[str, str], tuple[str, ...]]
    """By relation and entity. Absent: nothing is recorded."""

    def values(self, relation: str, entity: str) -> tuple[str, ...]:
        """What is true. Empty: there is none, or it is not recorded."""
        return self.facts.get((relation, entity), ())

    def entity(self, name: str) -> str | None:
        """The entity as it is spelled here, whatever the case and spacing of `name`. None: there is none."""
        spelled = " ".join(word.capitalize() for word in name.split())
        return spelled if spelled in self.kinds else None


def world_of(name: str) -> World:
    """The world of a name; the same for the same name, always. Raises InvalidInput for what names none."""
    return _world(parse(name))


@lru_cache(maxsize=KEPT_WORLDS)
def _world(spec: Spec) -> World:
    rng = Random(f"world {spec}")
    kinds = _kinds(spec, rng)
    members = {kind: tuple(e for e, k in kinds.items() if k is kind) for kind in dict.fromkeys(kinds.values())}
    facts: dict[tuple[str, str], tuple[str, ...]] = {}
    for relation in RELATION_TABLE:
        if not relation.many and relation.name != "twin":
            _record(relation.name, members, facts, rng)
    _twin(members[Kind.TOWN], facts, rng)
    return World(spec, kinds, members, facts)


def _kinds(spec: Spec, rng: Random) -> dict[str, Kind]:
    total = plan(spec.documents).articles
    kinds = [kind for kind, share in SHARES.items() for _ in range(round(share * total))]
    kinds += [Kind.PERSON] * (total - len(kinds))
    rng.shuffle(kinds)
    return dict(zip(islice(names(spec.split, rng), total), kinds, strict=True))


def _record(
    relation: str, members: Mapping[Kind, tuple[str, ...]], facts: dict[tuple[str, str], tuple[str, ...]], rng: Random
) -> None:
    subject, value = BY_NAME[relation].subject, BY_NAME[relation].value
    inverse = INVERSES.get(relation)
    for entity in members[subject]:
        if rng.random() < UNRECORDED:
            continue
        chosen = drawn(value, members, rng)
        others = facts.get((inverse, chosen), ()) if inverse else ()
        if chosen == entity or len(others) >= MOST_VALUES:
            continue
        facts[relation, entity] = (chosen,)
        if inverse:
            facts[inverse, chosen] = (*others, entity)


def _twin(towns: tuple[str, ...], facts: dict[tuple[str, str], tuple[str, ...]], rng: Random) -> None:
    """Twin towns are each other's."""
    order = rng.sample(towns, len(towns))
    for first, second in zip(order[::2], order[1::2], strict=False):
        if rng.random() >= UNRECORDED:
            facts["twin", first], facts["twin", second] = (second,), (first,)


def drawn(value: Kind, members: Mapping[Kind, tuple[str, ...]], rng: Random) -> str:
    """A value of a kind, whether it is true or not."""
    if value is Kind.YEAR:
        return str(rng.randint(*YEARS))
    if value is Kind.METRES:
        return str(rng.randint(*METRES))
    among = members[value]
    return among[int(rng.random() * len(among))]
