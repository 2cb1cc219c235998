"""Quantiles against published ones, and how often an interval contains the mean."""

from itertools import combinations
from math import comb
from random import Random

import pytest

from offing.core.confidence_interval import (
    Interval,
    find_detectable_difference,
    find_difference_interval,
    find_mean_interval,
    find_student_quantile,
    find_unpaired_interval,
    measure,
)


@pytest.mark.parametrize(
    ("probability", "degrees", "published"),
    [
        *[(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 3, 3.182), (0.975, 10, 2.228), (0.975, 30, 2.042)],
        *[(0.95, 1, 6.314), (0.95, 7, 1.895), (0.95, 120, 1.658), (0.9, 5, 1.476), (0.995, 4, 4.604)],
        *[(0.975, 1000, 1.962), (0.975, 1_000_000, 1.960), (0.5, 9, 0.0)],
    ],
)
def test_quantiles_are_those_of_published_tables(probability: float, degrees: int, published: float) -> None:
    assert find_student_quantile(probability, degrees) == pytest.approx(published, abs=6e-4)


@pytest.mark.parametrize("values", [[1.0] * 8, [0.0], [0.3] * 5, [400.0] * 9, [-2.0, -2.0]])
def test_no_interval_has_width_zero(values: list[float]) -> None:
    interval = find_mean_interval(measure(values))
    assert interval.low < interval.high
    assert interval.low <= values[0] <= interval.high
    paired = find_difference_interval(values, values)
    assert paired.low == -paired.high < 0


def test_the_mean_of_values_between_0_and_1_stays_there() -> None:
    assert find_mean_interval(measure([1.0] * 8)).high == 1.0
    assert find_mean_interval(measure([0.0] * 8)).low == 0.0


@pytest.mark.parametrize(("tasks", "share"), [(8, 0.1), (8, 0.5), (12, 0.02), (20, 0.2), (60, 0.05), (200, 0.3)])
def test_an_interval_of_95_percent_misses_a_difference_of_nothing_in_at_most_five_of_a_hundred_cases(
    tasks: int, share: float
) -> None:
    """`share` is the fraction of the tasks that only one of two equal versions solves."""
    rng, missed = Random(tasks), 0
    for _ in range(1000):
        solved = [rng.random() < 0.5 for _ in range(tasks)]
        ours = [float(one if rng.random() > share else rng.random() < 0.5) for one in solved]
        theirs = [float(one if rng.random() > share else rng.random() < 0.5) for one in solved]
        interval = find_difference_interval(ours, theirs)
        missed += not interval.low <= 0 <= interval.high
    assert missed <= 65, "50 are expected, with a standard deviation of 7"


def test_the_detectable_difference_shrinks_with_the_square_root_of_the_tasks() -> None:
    ours, theirs = [1.0, 0.0, 1.0, 0.0] * 25, [0.0, 0.0, 1.0, 1.0] * 25
    few = find_detectable_difference(find_difference_interval(ours, theirs), 100, 0.95)
    many = find_detectable_difference(find_difference_interval(ours * 4, theirs * 4), 400, 0.95)
    assert few / many == pytest.approx(2, rel=0.05)
    normal = find_detectable_difference(Interval(-0.1, 0.3), 10_000_000, 0.95)
    assert normal == pytest.approx(0.2 * (1.96 + 0.8416) / 1.96, rel=1e-3)


def test_an_unpaired_interval_of_0_and_1_is_that_of_agresti_and_caffo() -> None:
    """With 8 of 10 and 4 of 10: their estimates are 9 of 12 and 5 of 12."""
    interval = find_unpaired_interval([1.0] * 8 + [0.0] * 2, [1.0] * 4 + [0.0] * 6)
    error = (9 / 12 * 3 / 12 / 12 + 5 / 12 * 7 / 12 / 12) ** 0.5
    assert (interval.low + interval.high) / 2 == pytest.approx(4 / 12)
    assert (interval.high - interval.low) / 2 == pytest.approx(find_student_quantile(0.975, 21) * error)
    large = find_unpaired_interval([1.0, 0.0] * 20_000, [1.0, 0.0] * 20_000)
    assert large.high == pytest.approx(1.96 * (0.5 / 40_000) ** 0.5, rel=1e-3)


@pytest.mark.parametrize("values", [[1.0] * 20, [0.0], [0.3] * 5, [400.0] * 9])
def test_an_unpaired_interval_never_has_width_zero(values: list[float]) -> None:
    interval = find_unpaired_interval(values, values)
    assert interval.low == -interval.high < 0


def miss_exactly(count: int, chance: float, level: float) -> float:
    """The probability that the interval of two samples with the same chance of success excludes 0."""
    masses = [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]
    missed = 0.0
    for ours, theirs in combinations(range(count + 1), 2):
        a, b = [[1.0] * k + [0.0] * (count - k) for k in (ours, theirs)]
        if masses[ours] * masses[theirs] > 1e-9 and find_unpaired_interval(a, b, level).high < 0:
            missed += 2 * masses[ours] * masses[theirs]
    return missed


@pytest.mark.parametrize("level", [0.9, 0.975, 0.9958])
@pytest.mark.parametrize("chance", [0.02, 0.1, 0.5])
def test_an_unpaired_interval_misses_a_difference_of_nothing_no_more_often_than_its_level_says(
    chance: float, level: float
) -> None:
    assert miss_exactly(20, chance, level) <= 1.1 * (1 - level)
