"""Results of a world's tools: true, empty or misleading.

The result depends only on the world, the tool, the relation and the entity, so that a
repeated call returns the same result.
"""

from dataclasses import dataclass
from random import Random

from offing_world.facts import MAX_VALUES, World, draw_value
from offing_world.semantics import RELATIONS_BY_NAME, TOOLS_BY_RELATION, Relation

MISLEADING_PROBABILITY = 0.5
"""Probability that a tool that does not answer a relation returns values nevertheless."""
MAX_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class LookUpResult:
    values: tuple[str, ...]
    closed: bool
    """Whether the tool claims that the list is complete.

    It is true whenever there are values, including misleading ones.
    """


def look_up(world: World, tool: str, relation: str, entity: str) -> LookUpResult:
    """Return the result of a tool call. `entity` must have the spelling of the world.

    If the tool answers the relation and nothing is recorded, the result is empty and closed.
    """
    truth = world.find_values(relation, entity)
    if tool in TOOLS_BY_RELATION[relation]:
        return LookUpResult(truth, closed=True)
    rng = Random(f"{world.spec} {tool} {relation} {entity}")
    if rng.random() >= MISLEADING_PROBABILITY:
        return LookUpResult((), closed=False)
    values = _draw_misleading_values(world, RELATIONS_BY_NAME[relation], entity, truth, rng)
    return LookUpResult(values, closed=bool(values))


def _draw_misleading_values(
    world: World, relation: Relation, entity: str, truth: tuple[str, ...], rng: Random
) -> tuple[str, ...]:
    """Draw false values of the kind of the relation.

    Their number is possible for the relation but differs from the true number. Returns an empty
    tuple if not enough values could be drawn.
    """
    counts = [n for n in range(1, MAX_VALUES + 1) if n != len(truth)] if relation.multi_valued else [1]
    count = rng.choice(counts)
    values: dict[str, None] = {}
    for _ in range(MAX_ATTEMPTS):
        value = draw_value(relation.value, world.members, rng)
        if value not in truth and value != entity and len(values) < count:
            values[value] = None
    return tuple(values) if len(values) == count else ()
