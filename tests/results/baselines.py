"""What needs no training: an oracle, random calls, a greedy heuristic and counting, in worlds of every difficulty.

    .venv/bin/python -m tests.results.baselines [--tasks N] [--seeds N]

Writes the tables of docs/results/baselines.md. No strategy but the oracle reads the world. All know the grammar: they
make the look-ups that a question needs in their order and choose only tools, so the numbers are upper bounds for a
policy that must learn to read questions as well. Rollouts are simulated without a graph, one call per turn.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from textwrap import wrap

from offing.core.confidence_interval import (
    CONFIDENCE_LEVEL,
    find_detectable_difference,
    find_difference_interval,
    find_mean_interval,
    measure,
)
from offing_world.facts import world_from_name
from offing_world.strategies import Strategy, build_oracle, build_random, choose_greedily, count_worst_calls, simulate
from offing_world.tasks import WorldTask
from tests.results.counting import Context, build_counting, by_context, by_relation, count, see
from tests.results.pages import write_below_mark
from tests.results.question_overlap import Overlap, overlap_of
from tests.results.questions import Questions
from tests.results.runs import commit_of_checkout

PAGE = Path("docs/results/baselines.md")
FEW, MANY = 1_000, 10_000
"""Random rollouts that are counted."""


@dataclass(frozen=True, slots=True)
class Difficulty:
    """A kind of worlds and questions."""

    title: str
    questions: Questions
    spare: int = 0
    """Turns beyond those that the oracle needs at worst."""


SHORT, ALL_HOPS = (1, 3), (1, 6)
DIFFICULTIES = (
    Difficulty("plain, 2 spare turns", Questions(SHORT, tested_hops=ALL_HOPS), 2),
    Difficulty("plain, budget binds", Questions(SHORT, tested_hops=ALL_HOPS)),
    Difficulty("key", Questions(SHORT, tested_hops=ALL_HOPS, options="+key"), 2),
    Difficulty("referral", Questions(SHORT, tested_hops=ALL_HOPS, options="+referral"), 2),
    Difficulty("key and referral", Questions(SHORT, tested_hops=ALL_HOPS, options="+key+referral"), 2),
    Difficulty("noise, budget binds", Questions(SHORT, tested_hops=ALL_HOPS, options="+noise")),
    Difficulty("outage", Questions(SHORT, tested_hops=ALL_HOPS, options="+outage"), 2),
)
LONG = (
    Difficulty("chain", Questions((2, 6), ("chain",), 1000), 4),
    Difficulty("chain, key", Questions((2, 6), ("chain",), 1000, options="+key"), 4),
)
LENGTHS = (8, 16, 32, 64, 120)

STRATEGIES = ("oracle", "random", "greedy", f"counting {FEW:,}", f"counting {MANY:,}", f"conditional {MANY:,}")


@dataclass(frozen=True, slots=True)
class Reached:
    """What the strategies reach at one difficulty."""

    difficulty: Difficulty
    tasks: Sequence[WorldTask]
    rewards: Mapping[str, Sequence[float]]
    """By strategy: the mean over seeds for each task."""
    overlap: Overlap


def reach(difficulty: Difficulty, tasks: Sequence[WorldTask], seeds: int, counted: int = MANY) -> Reached:
    """Play every strategy on every task with every seed. Seeds draw other training questions and random numbers."""
    rewards: dict[str, list[list[float]]] = {name: [] for name in STRATEGIES}
    trained = list[WorldTask]()
    for seed in range(seeds):
        trained = difficulty.questions.drawn(counted, seed)
        for name, strategy in _strategies(difficulty, trained, seed).items():
            rewards[name].append([_play(difficulty, task, strategy, seed * 10_000 + n) for n, task in enumerate(tasks)])
    means = {name: [fmean(one) for one in zip(*by_seed, strict=True)] for name, by_seed in rewards.items()}
    return Reached(difficulty, tasks, means, overlap_of(tasks, trained))


def _strategies(difficulty: Difficulty, trained: Sequence[WorldTask], seed: int) -> Mapping[str, Strategy]:
    options, seen = world_from_name(trained[0].scope["environment"]).spec.options, see(trained, seed)

    def counting(number: int, context: Context) -> Strategy:
        needed = options if context is by_context else ()
        return build_counting(count(seen[:number], context), context, needed)

    built = (
        build_oracle(options),
        build_random(options),
        choose_greedily,
        counting(FEW, by_relation),
        counting(MANY, by_relation),
        counting(MANY, by_context),
    )
    return dict(zip(STRATEGIES, built, strict=True))


def _play(difficulty: Difficulty, task: WorldTask, strategy: Strategy, seed: int) -> float:
    world = world_from_name(task.scope["environment"])
    turns = count_worst_calls(world.spec.options, task.hops) + difficulty.spare
    return float(simulate(world, task.question, strategy, turns, seed).is_right(task.answers))


def render(short: Sequence[Reached], long: Sequence[tuple[int, Reached]], seeds: int) -> str:
    """Return the part of the page below the mark."""
    return "\n".join([*_render_short(short), "", *_by_hops(short), "", *_render_long(long), "", *_foot(short, seeds)])


def _render_short(reached: Sequence[Reached]) -> list[str]:
    heads = ["difficulty", *STRATEGIES, "detectable", "overlap"]
    rows = [
        [one.difficulty.title, *(_mean(one.rewards[name]) for name in STRATEGIES), _detectable(one), _met(one.overlap)]
        for one in reached
    ]
    return _table(heads, rows)


def _by_hops(reached: Sequence[Reached]) -> list[str]:
    numbers = sorted({task.hops for one in reached for task in one.tasks})
    rows = [
        [one.difficulty.title, name, *(f"{fmean(_at(one, name, hops)):.2f}" for hops in numbers)]
        for one in reached
        for name in STRATEGIES[1:]
    ]
    return _table(["difficulty", "strategy", *(f"{n} look-ups" for n in numbers)], rows)


def _at(one: Reached, name: str, hops: int) -> list[float]:
    return [reward for task, reward in zip(one.tasks, one.rewards[name], strict=True) if task.hops == hops]


def _render_long(reached: Sequence[tuple[int, Reached]]) -> list[str]:
    rows = [
        [one.difficulty.title, str(hops), str(len(one.tasks)), *(_mean(one.rewards[name]) for name in STRATEGIES)]
        for hops, one in reached
    ]
    return _table(["long questions", "look-ups", "tasks", *STRATEGIES], rows)


def _foot(reached: Sequence[Reached], seeds: int) -> list[str]:
    text = (
        f"Commit {commit_of_checkout()}; {seeds} seeds; {len(reached[0].tasks)} held-out tasks per row of the first "
        "table. Values are means over tasks of the mean over seeds, with 95 % intervals over tasks; long questions "
        "have one seed. *Detectable* is the difference between plain and conditional counting that as many tasks show "
        "in 80 of 100 cases. *Overlap* is the share of held-out questions with two or more look-ups whose compact form "
        "occurs among the counted questions; questions of one look-up have one relation and always occur."
    )
    return [*wrap(text, 120), ""]


def _mean(rewards: Sequence[float]) -> str:
    interval = find_mean_interval(measure(rewards))
    return f"{fmean(rewards):.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _detectable(one: Reached) -> str:
    plain, conditional = one.rewards[STRATEGIES[4]], one.rewards[STRATEGIES[5]]
    interval = find_difference_interval(conditional, plain)
    return f"{find_detectable_difference(interval, len(plain), CONFIDENCE_LEVEL):.2f}"


def _met(overlap: Overlap) -> str:
    return f"{overlap.longer_share:.0%}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.results.baselines")
    parser.add_argument("--tasks", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--page", type=Path, default=PAGE)
    inputs = parser.parse_args(argv)
    short = [reach(one, one.questions.held_out(inputs.tasks), inputs.seeds) for one in DIFFICULTIES]
    long = [(hops, reach(one, _long(one, hops, inputs.tasks), 1)) for one in LONG for hops in LENGTHS]
    print(write_below_mark(inputs.page, render(short, long, inputs.seeds)))
    return 0


def _long(difficulty: Difficulty, hops: int, tasks: int) -> list[WorldTask]:
    return list(islice(difficulty.questions.of_length(hops), max(1, tasks // 10)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
