"""The entities of a world and the facts about them, derived from the world's name alone.

Documents, tools and questions are derived from these facts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from random import Random

from offing_world.names import generate_names
from offing_world.semantics import RELATION_TABLE, RELATIONS_BY_NAME, SHELVES, EntityKind
from offing_world.spec import WorldSpec, parse_world_name

MAX_CACHED_WORLDS = 8

KIND_FRACTIONS = {EntityKind.TOWN: 0.20, EntityKind.GUILD: 0.15, EntityKind.BOOK: 0.20}
"""Fraction of the entities of each kind. All other entities are persons."""
UNRECORDED_PROBABILITY = 0.08
"""Probability that a single-valued relation has no recorded value."""
MAX_VALUES = 6
"""Maximum number of values of a multi-valued relation."""
YEAR_RANGE, METER_RANGE = (600, 999), (3, 2_400)

INVERSES = {"guild": "members", "author": "works"}


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    """Number of documents of each type in a world."""

    articles: int
    """Articles of the current register, one per entity."""
    editions: int
    """Older editions of articles, which are superseded."""
    letters: int
    """Letters, which repeat hearsay."""
    directories: int
    """Lists of several entities."""


def plan_documents(documents: int) -> DocumentPlan:
    """Split a number of documents into types. One document is the page about the archive itself."""
    editions, letters, directories = round(0.12 * documents), round(0.12 * documents), round(0.06 * documents)
    return DocumentPlan(documents - 1 - editions - letters - directories, editions, letters, directories)


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """The entities of a world in order, and the values of every recorded relation."""

    spec: WorldSpec
    kinds: Mapping[str, EntityKind]
    members: Mapping[EntityKind, tuple[str, ...]]
    """Entities by kind."""
    facts: Mapping[tuple[str, str], tuple[str, ...]]
    """Values by relation and entity. A missing key means that nothing is recorded."""

    def find_values(self, relation: str, entity: str) -> tuple[str, ...]:
        """Return the true values of a relation.

        Empty means that there are none or that none is recorded.
        """
        return self.facts.get((relation, entity), ())

    def find_entity(self, name: str) -> str | None:
        """Return the entity with a name in the spelling of the world, ignoring case and white space.

        Returns `None` if there is no such entity.
        """
        spelled = " ".join(word.capitalize() for word in name.split())
        return spelled if spelled in self.kinds else None


def world_from_name(name: str) -> World:
    """Return the world with a name. The same name always gives the same world.

    Raises `InvalidInput` if `name` is not the name of a world.
    """
    return _build_world(parse_world_name(name))


def find_shelf(world: World, entity: str) -> int:
    """Return the shelf of an entity, from 0 on. In a world with the option `key`, it decides which tools answer."""
    digest = blake2b(f"shelf {world.spec.base} {entity}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % SHELVES


@lru_cache(maxsize=MAX_CACHED_WORLDS)
def _build_world(spec: WorldSpec) -> World:
    rng = Random(f"world {spec.base}")
    kinds = _assign_kinds(spec, rng)
    members = {kind: tuple(e for e, k in kinds.items() if k is kind) for kind in dict.fromkeys(kinds.values())}
    facts: dict[tuple[str, str], tuple[str, ...]] = {}
    for relation in RELATION_TABLE:
        if not relation.multi_valued and relation.name != "twin":
            _generate_relation(relation.name, members, facts, rng)
    _pair_twin_towns(members[EntityKind.TOWN], facts, rng)
    return World(spec, kinds, members, facts)


def _assign_kinds(spec: WorldSpec, rng: Random) -> dict[str, EntityKind]:
    total = plan_documents(spec.documents).articles
    kinds = [kind for kind, share in KIND_FRACTIONS.items() for _ in range(round(share * total))]
    kinds += [EntityKind.PERSON] * (total - len(kinds))
    rng.shuffle(kinds)
    return dict(zip(islice(generate_names(spec.split, rng), total), kinds, strict=True))


def _generate_relation(
    relation: str,
    members: Mapping[EntityKind, tuple[str, ...]],
    facts: dict[tuple[str, str], tuple[str, ...]],
    rng: Random,
) -> None:
    subject, value = RELATIONS_BY_NAME[relation].subject, RELATIONS_BY_NAME[relation].value
    inverse = INVERSES.get(relation)
    for entity in members[subject]:
        if rng.random() < UNRECORDED_PROBABILITY:
            continue
        chosen = draw_value(value, members, rng)
        others = facts.get((inverse, chosen), ()) if inverse else ()
        if chosen == entity or len(others) >= MAX_VALUES:
            continue
        facts[relation, entity] = (chosen,)
        if inverse:
            facts[inverse, chosen] = (*others, entity)


def _pair_twin_towns(towns: tuple[str, ...], facts: dict[tuple[str, str], tuple[str, ...]], rng: Random) -> None:
    """Assign twin towns in pairs. The relation is symmetric."""
    order = rng.sample(towns, len(towns))
    for first, second in zip(order[::2], order[1::2], strict=False):
        if rng.random() >= UNRECORDED_PROBABILITY:
            facts["twin", first], facts["twin", second] = (second,), (first,)


def draw_value(kind: EntityKind, members: Mapping[EntityKind, tuple[str, ...]], rng: Random) -> str:
    """Draw a value of a kind, true or not."""
    if kind is EntityKind.YEAR:
        return str(rng.randint(*YEAR_RANGE))
    if kind is EntityKind.METERS:
        return str(rng.randint(*METER_RANGE))
    among = members[kind]
    return among[int(rng.random() * len(among))]
