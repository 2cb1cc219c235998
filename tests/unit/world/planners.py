"""A planner in a world without any platform: what remains of a rollout when only the choice of tools is left."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from offing_world.fact_lookup import look_up
from offing_world.facts import World
from offing_world.question_solver import (
    NOT_ANSWERABLE,
    KnownFact,
    LookUp,
    find_answer,
    find_missing_look_ups,
    list_tools_of_relation,
)
from offing_world.semantics import TOOLS
from offing_world.tasks import WorldTask

Planner = Callable[[LookUp], str]
"""The tool that it takes for a look-up."""


def oracle(need: LookUp) -> str:
    return list_tools_of_relation(need.relation)[0]


def random_planner(seed: int) -> Planner:
    rng = Random(seed)
    return lambda need: rng.choice(TOOLS)


@dataclass(frozen=True)
class Played:
    calls: tuple[tuple[str, KnownFact], ...]
    answer: str | None


def play(world: World, question: str, planner: Planner, turns: int) -> Played:
    """One look-up a turn, always the first that is missing, and then whatever answer there is."""
    calls: list[tuple[str, KnownFact]] = []
    while len(calls) < turns and (missing := find_missing_look_ups(question, [k for _, k in calls])):
        tool = planner(missing[0])
        text = look_up(world, tool, missing[0].relation, missing[0].entity)
        calls.append((tool, KnownFact(missing[0].relation, missing[0].entity, text.values, text.closed)))
    return Played(tuple(calls), find_answer(question, [k for _, k in calls]))


def right(task: WorldTask, message: str | None) -> bool:
    return message in (task.answers or (NOT_ANSWERABLE,))
