"""What a world's tool says when it is asked: the truth, nothing, or something that misleads.

Decided by world, tool, relation and entity alone, so that asking again says the same.
"""

from dataclasses import dataclass
from random import Random

from offing.world.facts import MOST_VALUES, World, drawn
from offing.world.semantics import ANSWERED_BY, BY_NAME, Relation

MISLEADING = 0.5
"""How often a tool that does not answer a relation gives values nevertheless."""
TRIES = 20


@dataclass(frozen=True, slots=True)
class Said:
    values: tuple[str, ...]
    closed: bool
    """The tool claims that these are all. Values always come with it, also those that mislead."""


def look_up(world: World, tool: str, relation: str, entity: str) -> Said:
    """`entity` as the world spells it. A right tool with nothing recorded says so: no values, closed."""
    truth = world.values(relation, entity)
    if tool in ANSWERED_BY[relation]:
        return Said(truth, closed=True)
    rng = Random(f"{world.spec} {tool} {relation} {entity}")
    if rng.random() >= MISLEADING:
        return Said((), closed=False)
    values = _misleading(world, BY_NAME[relation], entity, truth, rng)
    return Said(values, closed=bool(values))


def _misleading(world: World, relation: Relation, entity: str, truth: tuple[str, ...], rng: Random) -> tuple[str, ...]:
    """Untrue values of the right kind, as many as could be true but never as many as are. Empty: none was drawn."""
    counts = [n for n in range(1, MOST_VALUES + 1) if n != len(truth)] if relation.many else [1]
    wanted = rng.choice(counts)
    found: dict[str, None] = {}
    for _ in range(TRIES):
        value = drawn(relation.value, world.members, rng)
        if value not in truth and value != entity and len(found) < wanted:
            found[value] = None
    return tuple(found) if len(found) == wanted else ()
