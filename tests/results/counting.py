"""Counting: which tool was followed by success how often, in random rollouts. It reads results and never the world.

The plain table has a row for each relation. The conditional one has a row for each relation, shelf that is known, and
tool that was asked last for the same look-up; its user knows what to condition on, which a policy has to learn.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from offing_world.facts import world_from_name
from offing_world.question_solver import LookUp
from offing_world.semantics import SHELF, TOOLS
from offing_world.spec import WorldOption
from offing_world.strategies import (
    Attempt,
    Move,
    Strategy,
    build_random,
    count_worst_calls,
    find_known_shelf,
    find_need,
    simulate,
)
from offing_world.tasks import WorldTask

Key = tuple[object, ...]
Context = Callable[[LookUp, Sequence[Attempt]], Key]
"""A function of a needed look-up and the attempts before it: the row of a table."""

PRIOR_RUNS, PRIOR_SUCCESSES = 1.0, 0.1
"""Added to each count, so that a tool that was tried once is not preferred for that one success."""
SPARE = 2
"""Turns of a random rollout beyond those of an oracle."""


@dataclass(frozen=True, slots=True)
class SeenRollout:
    """A random rollout: what was asked, and whether the answer was right."""

    question: str
    attempts: tuple[Attempt, ...]
    is_right: bool


def by_relation(need: LookUp, _attempts: Sequence[Attempt]) -> Key:
    return (need.relation,)


def by_context(need: LookUp, attempts: Sequence[Attempt]) -> Key:
    tools = [attempt.tool for attempt in attempts if attempt.look_up == need and attempt.fact]
    return (need.relation, find_known_shelf(need.entity, attempts), tools[-1] if tools else "")


def see(tasks: Iterable[WorldTask], seed: int) -> list[SeenRollout]:
    """Play one random rollout per task."""
    return [_see(task, seed * 1_000_003 + n) for n, task in enumerate(tasks)]


def _see(task: WorldTask, seed: int) -> SeenRollout:
    world = world_from_name(task.scope["environment"])
    turns = count_worst_calls(world.spec.options, task.hops) + SPARE
    one = simulate(world, task.question, build_random(world.spec.options), turns, seed)
    return SeenRollout(task.question, one.attempts, one.is_right(task.answers))


def count(seen: Iterable[SeenRollout], context: Context) -> Mapping[Key, Mapping[str, float]]:
    """Return the share of successes by row and tool."""
    runs: dict[tuple[Key, str], float] = {}
    successes: dict[tuple[Key, str], float] = {}
    for rollout in seen:
        for n, attempt in enumerate(rollout.attempts):
            if attempt.look_up.relation != SHELF and attempt.fact is not None:
                cell = context(attempt.look_up, rollout.attempts[:n]), attempt.tool
                runs[cell] = runs.get(cell, 0.0) + 1
                successes[cell] = successes.get(cell, 0.0) + rollout.is_right
    table: dict[Key, dict[str, float]] = {}
    for (row, tool), number in runs.items():
        rate = (successes[row, tool] + PRIOR_SUCCESSES) / (number + PRIOR_RUNS)
        table.setdefault(row, {})[tool] = rate
    return table


def build_counting(table: Mapping[Key, Mapping[str, float]], context: Context, options: Sequence[str] = ()) -> Strategy:
    """Return the strategy that asks the tool with the highest share of successes.

    With the option `key` in `options`, it asks for the shelf of an entity first. Rows that never occurred get any tool.
    """

    def choose(question: str, attempts: Sequence[Attempt], rng: Random) -> Move:
        need = find_need(question, attempts)
        assert need is not None
        if WorldOption.KEY in options and find_known_shelf(need.entity, attempts) is None:
            return Move(TOOLS[0], LookUp(SHELF, need.entity))
        rates = table.get(context(need, attempts))
        return Move(max(rates, key=rates.__getitem__) if rates else rng.choice(TOOLS), need)

    return choose
