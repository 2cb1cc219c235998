"""Speed of generating worlds, and accuracy of an oracle and of random tools: `python -m tests.bench.world_speed`."""

import os
import resource
from collections import Counter
from collections.abc import Callable
from statistics import mean, pstdev
from time import perf_counter
from typing import TypeVar

from offing_world.compact_notation import (
    build_entity_index,
    render_compact_call,
    render_compact_question,
    render_compact_values,
)
from offing_world.documents import iter_documents
from offing_world.facts import _build_world, world_from_name  # pyright: ignore[reportPrivateUsage]
from offing_world.tasks import WorldTask, generate_tasks
from tests.unit.world.planners import Planner, oracle, play, random_planner, right

T = TypeVar("T")

SIZES = ("heldout-1@small", "heldout-1@medium", "heldout-1@large")
HELD_OUT = "heldout-1@500"
QUESTIONS, SEEDS = 200, 20


def main() -> None:
    print(f"load {' '.join(f'{n:.1f}' for n in os.getloadavg())}")
    for spec in SIZES:
        created, _ = best(lambda spec=spec: (_build_world.cache_clear(), world_from_name(spec)))
        wrote, size = best(lambda spec=spec: sum(len(d.text.encode()) for d in iter_documents(spec)), 1)
        request, number = best(lambda spec=spec: sum(1 for _ in generate_tasks(spec, count=500, hops=(1, 6))), 1)
        print(
            f"{spec}: facts {created:.3f} s, documents {wrote:.2f} s ({size / 1e6:.1f} MB), "
            f"{number / request:.0f} tasks a second, {memory():.0f} MB at most"
        )
    drawn = list(generate_tasks(HELD_OUT, count=QUESTIONS))
    print(f"oracle, no turn to spare: {share(drawn, oracle, 0):.3f}")
    for slack in (2, 8):
        luck = [share(drawn, random_planner(seed), slack) for seed in range(SEEDS)]
        print(f"random, {slack} turns to spare: {mean(luck):.3f}, deviation {pstdev(luck):.3f}, most {max(luck):.3f}")
    print(f"random by hops, 2 to spare: {by_hops(drawn)}")
    for name, planner in (("oracle", oracle), ("random", random_planner(0))):
        lengths = [words(task, planner) for task in drawn]
        print(f"words of a rollout, {name}: {mean(lengths):.1f}, most {max(lengths)}")


def best(work: Callable[[], T], times: int = 3) -> tuple[float, T]:
    """Return the seconds of the fastest time, and the result of the last one."""
    seconds: list[float] = []
    while True:
        began = perf_counter()
        result = work()
        seconds.append(perf_counter() - began)
        if len(seconds) == times:
            return min(seconds), result


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def share(drawn: list[WorldTask], planner: Planner, slack: int) -> float:
    world = world_from_name(HELD_OUT)
    return mean(right(t, play(world, t.question, planner, t.hops + slack).answer) for t in drawn)


def by_hops(drawn: list[WorldTask]) -> dict[int, float]:
    ok, all_ = Counter[int](), Counter[int]()
    world = world_from_name(HELD_OUT)
    for seed in range(SEEDS):
        planner = random_planner(seed)
        for task in drawn:
            ok[task.hops] += right(task, play(world, task.question, planner, task.hops + 2).answer)
            all_[task.hops] += 1
    return {hops: round(ok[hops] / all_[hops], 2) for hops in sorted(all_)}


def words(task: WorldTask, planner: Planner) -> int:
    """Return the question, calls and values, each followed by an end word."""
    names = build_entity_index(task.question)
    results = render_compact_question(task.question).split()
    for tool, known in play(world_from_name(HELD_OUT), task.question, planner, task.hops + 2).calls:
        results += [*render_compact_call(tool, known.relation, known.entity, names).split(), "stop"]
        names = names.with_entities((known.entity, *known.values))
        results += [*render_compact_values(known.values, names, closed=known.closed).split(), "stop"]
    return len(results)


if __name__ == "__main__":
    main()
