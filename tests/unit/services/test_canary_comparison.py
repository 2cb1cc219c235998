"""Looks at a canary: their sizes and levels, and how often a simulated canary gets a verdict."""

from random import Random
from statistics import fmean

import pytest

from offing.services.canary_comparison import (
    CanaryLook,
    CanaryVerdict,
    compare_canary,
    find_canary_level,
    find_look_tasks,
)

CASES, TASK_COUNT, MARGIN = 400, 230, 0.05
"""Simulated canaries, and completed tasks of each version: enough for seven looks."""

BETTER, WORSE = 0.2, -0.25
"""Differences of success rates that they should decide. Worse means by more than the margin."""


def draw(rng: Random, bonus: float = 0.0, count: int = TASK_COUNT) -> list[float]:
    """Rewards of tasks that differ in difficulty: mostly 0 or 1, some between."""
    chances = [0.2 + 0.5 * rng.random() + bonus for _ in range(count)]
    return [float(rng.random() < one) if rng.random() < 0.7 else min(max(one, 0.0), 1.0) for one in chances]


def take_looks(canary: list[float], active: list[float], every: int) -> list[CanaryLook]:
    """The looks of somebody who checks after each `every` further tasks of each version."""
    looks: list[CanaryLook] = []
    for seen in range(every, len(canary) + every, every):
        looks += compare_canary(canary[:seen], active[:seen], done=len(looks), looks=len(looks), margin=MARGIN)
        if looks and looks[-1].verdict is CanaryVerdict.WORSE:
            break
    return looks


def measure_verdicts(rng: Random, every: int) -> dict[CanaryVerdict, float]:
    """The fraction of equal canaries that get each verdict at any look."""
    counts = dict.fromkeys(CanaryVerdict, 0)
    for _ in range(CASES):
        for verdict in {look.verdict for look in take_looks(draw(rng), draw(rng), every)}:
            counts[verdict] += 1
    return {verdict: count / CASES for verdict, count in counts.items()}


def test_looks_are_at_fixed_sizes_and_each_is_stricter_than_the_one_before() -> None:
    assert [find_look_tasks(number) for number in range(1, 8)] == [20, 30, 45, 68, 102, 153, 230]
    levels = [find_canary_level(look) for look in range(1, 10_000)]
    assert levels == sorted(levels)
    assert levels[0] == pytest.approx(0.975)
    assert sum(1 - level for level in levels) < 0.05, "both ends together, over any number of looks"


def test_the_looks_are_the_same_however_often_one_checks() -> None:
    rng = Random(6)
    canary, active = draw(rng, -0.1), draw(rng)
    looks = take_looks(canary, active, every=TASK_COUNT)
    assert [take_looks(canary, active, every) for every in (1, 7, 50)] == [looks] * 3
    assert [(look.look, look.tasks) for look in looks[:2]] == [(1, 20), (2, 30)]


def test_a_look_waits_until_both_versions_have_completed_enough_tasks() -> None:
    assert compare_canary([0.0] * 19, [1.0] * 200) == []
    (look,) = compare_canary([0.0] * 20, [1.0] * 200)
    assert (look.tasks, look.difference, look.verdict) == (20, -1.0, CanaryVerdict.WORSE)
    assert compare_canary([0.0] * 20, [1.0] * 200, done=1, looks=1) == []


def test_looks_end_with_the_first_that_finds_the_canary_worse_by_more_than_the_margin() -> None:
    worse, better = [0.0] * 60, [1.0] * 60
    assert [look.verdict for look in compare_canary(worse, better)] == [CanaryVerdict.WORSE]
    assert {look.verdict for look in compare_canary(better, worse)} == {CanaryVerdict.BETTER}
    assert {look.verdict for look in compare_canary(worse, better, margin=0.99)} == {CanaryVerdict.UNDECIDED}


def test_looks_at_earlier_canaries_make_those_at_the_next_one_stricter() -> None:
    rng = Random(7)
    canary, active = draw(rng, count=20), draw(rng, count=20)
    (first,) = compare_canary(canary, active)
    (later,) = compare_canary(canary, active, looks=6)
    assert (first.look, later.look, later.tasks) == (1, 7, 20)
    assert later.low < first.low
    assert later.detectable_difference > first.detectable_difference


@pytest.mark.parametrize("every", [1, 13, TASK_COUNT])
def test_an_equal_canary_gets_a_verdict_in_at_most_five_of_a_hundred_cases_however_often_one_checks(every: int) -> None:
    fractions = measure_verdicts(Random(1), every)
    assert fractions[CanaryVerdict.BETTER] + fractions[CanaryVerdict.WORSE] <= 0.05


def test_rewards_of_0_and_1_are_no_exception_also_when_success_is_rare() -> None:
    rng, wrong = Random(2), 0
    for chance in (0.05, 0.3, 0.5, 0.9):
        for _ in range(CASES // 2):
            canary, active = [[float(rng.random() < chance) for _ in range(TASK_COUNT)] for _ in range(2)]
            wrong += any(look.verdict is not CanaryVerdict.UNDECIDED for look in compare_canary(canary, active))
    assert wrong / (2 * CASES) <= 0.05


@pytest.mark.parametrize(("effect", "verdict"), [(BETTER, CanaryVerdict.BETTER), (WORSE, CanaryVerdict.WORSE)])
def test_a_canary_that_differs_by_the_stated_effect_is_decided_in_at_least_eighty_of_a_hundred_cases(
    effect: float, verdict: CanaryVerdict
) -> None:
    rng, decisions = Random(3), 0
    for _ in range(CASES):
        canary, active = [
            [float(rng.random() < 0.5 + side * effect / 2) for _ in range(TASK_COUNT)] for side in (1, -1)
        ]
        decisions += any(look.verdict is verdict for look in compare_canary(canary, active, margin=MARGIN))
    print(f"{effect:+.2f} is decided in {decisions / CASES:.0%} of the cases after {TASK_COUNT} tasks of each")
    assert decisions / CASES >= 0.8


def test_rollouts_of_one_task_are_not_independent_and_would_give_many_equal_canaries_a_verdict() -> None:
    def draw_groups(rng: Random) -> list[list[float]]:
        chances = [rng.random() for _ in range(TASK_COUNT)]
        return [[float(rng.random() < chance) for _ in range(8)] for chance in chances]

    def count_verdicts(rng: Random, by_task: bool) -> float:
        wrong = 0
        for _ in range(CASES):
            canary, active = [
                [fmean(group) for group in groups]
                if by_task
                else [one for group in groups for one in group][:TASK_COUNT]
                for groups in (draw_groups(rng), draw_groups(rng))
            ]
            wrong += any(look.verdict is not CanaryVerdict.UNDECIDED for look in compare_canary(canary, active))
        return wrong / CASES

    by_task, by_rollout = count_verdicts(Random(5), True), count_verdicts(Random(5), False)
    print(f"equal canaries with a verdict: {by_task:.1%} by tasks, {by_rollout:.0%} by rollouts in groups of 8")
    assert by_task <= 0.05
    assert by_rollout > 0.2


def test_the_detectable_difference_of_a_look_is_one_that_it_shows_in_eighty_of_a_hundred_cases() -> None:
    rng = Random(4)
    look = compare_canary(draw(rng, count=153), draw(rng, count=153), done=5, looks=5)[0]
    print(f"detectable after {look.tasks} tasks of each: {look.detectable_difference:.3f}")
    detections = 0
    for _ in range(CASES):
        canary, active = draw(rng, look.detectable_difference, 153), draw(rng, count=153)
        detections += compare_canary(canary, active, done=5, looks=5)[0].low > 0
    assert 0.7 < detections / CASES < 0.9
