"""Results of a world's tools: true, empty or misleading.

The result depends only on the world, the tool, the relation and the entity, so that a
repeated call returns the same result. An outage depends on the call, too.
"""

from dataclasses import dataclass
from random import Random

from offing_world.facts import MAX_VALUES, World, draw_value, find_shelf
from offing_world.semantics import RELATIONS_BY_NAME, SHELF, Relation, list_candidate_tools
from offing_world.spec import WorldOption

MISLEADING_PROBABILITY = 0.5
"""Probability that a tool that does not answer a relation returns values nevertheless."""
MAX_ATTEMPTS = 20
DISPUTED_PROBABILITY = 0.4
"""With noise, the probability that one of the three tools that answer a relation is wrong about an entity."""
OUTAGE_PROBABILITY = 0.3
"""With outages, the probability that a call fails."""


@dataclass(frozen=True, slots=True)
class LookUpResult:
    values: tuple[str, ...]
    closed: bool
    """Whether the tool claims that the list is complete.

    It is true whenever there are values, including misleading ones, except with noise.
    """
    witness: str = ""
    """The tool, if the values count only once another tool agrees. Empty means that they count."""


def look_up(world: World, tool: str, relation: str, entity: str) -> LookUpResult:
    """Return the result of a tool call. `entity` must have the spelling of the world.

    If the tool answers the relation and nothing is recorded, the result is empty and closed.
    """
    options = world.spec.options
    if relation == SHELF:
        return LookUpResult((str(find_shelf(world, entity)),), closed=True)
    candidates = list_candidate_tools(relation, options, find_shelf(world, entity))
    truth = world.find_values(relation, entity)
    if WorldOption.NOISE in options:
        return _look_up_witness(world, tool, relation, entity, candidates)
    if WorldOption.REFERRAL in options and tool in candidates:
        rng = Random(f"referral {world.spec.base} {relation} {entity}")
        return LookUpResult(truth, closed=True) if tool == rng.choice(candidates) else LookUpResult((), closed=False)
    if tool in candidates:
        return LookUpResult(truth, closed=True)
    values = _mislead(world, tool, relation, entity)
    return LookUpResult(values, closed=bool(values))


def is_out(world: World, tool: str, relation: str, entity: str, call: str) -> bool:
    """Return whether a call fails. `call` names it, so that the same call always ends in the same way."""
    if WorldOption.OUTAGE not in world.spec.options:
        return False
    return Random(f"outage {world.spec.base} {tool} {relation} {entity} {call}").random() < OUTAGE_PROBABILITY


def _look_up_witness(world: World, tool: str, relation: str, entity: str, candidates: tuple[str, ...]) -> LookUpResult:
    truth = world.find_values(relation, entity)
    if tool not in candidates:
        values = _mislead(world, tool, relation, entity)
        return LookUpResult(values, closed=False, witness=tool if values else "")
    if not truth:
        return LookUpResult((), closed=True)
    rng = Random(f"witness {world.spec.base} {relation} {entity}")
    is_wrong = rng.random() < DISPUTED_PROBABILITY and rng.choice(candidates) == tool
    values = _draw_misleading_values(world, RELATIONS_BY_NAME[relation], entity, truth, rng) if is_wrong else truth
    return LookUpResult(values, closed=False, witness=tool if values else "")


def _mislead(world: World, tool: str, relation: str, entity: str) -> tuple[str, ...]:
    """Return what a tool that does not answer a relation returns: nothing, or false values."""
    rng = Random(f"{world.spec.base} {tool} {relation} {entity}")
    if rng.random() >= MISLEADING_PROBABILITY:
        return ()
    truth = world.find_values(relation, entity)
    return _draw_misleading_values(world, RELATIONS_BY_NAME[relation], entity, truth, rng)


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
