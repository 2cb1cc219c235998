"""A planner in a world without any platform: what remains of a rollout when only the choice of tools is left."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from offing.world.facts import World
from offing.world.lookup import look_up
from offing.world.semantics import TOOLS
from offing.world.solving import NOT_ANSWERABLE, Known, Need, answer, needs, tools_for
from offing.world.tasks import WorldTask

Planner = Callable[[Need], str]
"""The tool that it takes for a look-up."""


def oracle(need: Need) -> str:
    return tools_for(need.relation)[0]


def random_planner(seed: int) -> Planner:
    rng = Random(seed)
    return lambda need: rng.choice(TOOLS)


@dataclass(frozen=True)
class Played:
    calls: tuple[tuple[str, Known], ...]
    answer: str | None


def play(world: World, question: str, planner: Planner, turns: int) -> Played:
    """One look-up a turn, always the first that is missing, and then whatever answer there is."""
    calls: list[tuple[str, Known]] = []
    while len(calls) < turns and (missing := needs(question, [k for _, k in calls])):
        tool = planner(missing[0])
        said = look_up(world, tool, missing[0].relation, missing[0].entity)
        calls.append((tool, Known(missing[0].relation, missing[0].entity, said.values, said.closed)))
    return Played(tuple(calls), answer(question, [k for _, k in calls]))


def right(task: WorldTask, said: str | None) -> bool:
    return said in (task.answers or (NOT_ANSWERABLE,))
