"""Confidence intervals of means and of differences: those of evaluations, experiments, promotion gates and canaries.

They are Student's t intervals over values to which two are added, one at each end of the range in which they lie. An
interval therefore never has width 0, and it holds for rewards of 0 and 1 with few tasks, where differences are rare.
For proportions: Agresti and Coull, Approximate is better than "exact", The American Statistician 52 (1998); for
paired ones: Agresti and Min, Simple improved confidence intervals for comparing matched proportions, Statistics in
Medicine 24 (2005); for ones that are not paired: Agresti and Caffo, Simple and effective confidence intervals for
proportions and differences of proportions result from adding two successes and two failures, The American Statistician
54 (2000).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean

CONFIDENCE_LEVEL = 0.95

UNIT_RANGE = (0.0, 1.0)

ADDED = 2
"""Number of added values."""

MAX_DEGREES = 10_000
"""Degrees of freedom above which Student's distribution is taken as normal. Quantiles differ by less than 0.02 %."""


@dataclass(frozen=True, slots=True)
class Moments:
    """What an interval needs to know of values."""

    count: int
    mean: float
    squares: float
    """Mean of their squares."""
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval of a mean."""

    low: float
    high: float


def measure(values: Sequence[float]) -> Moments:
    """Return the moments of at least one value."""
    return Moments(len(values), fmean(values), fmean([v * v for v in values]), min(values), max(values))


def find_mean_interval(moments: Moments, level: float = CONFIDENCE_LEVEL) -> Interval:
    """Return the interval of a mean at a two-sided level, such as 0.95."""
    least, greatest = _find_range(moments.least, moments.greatest)
    added = (least + greatest, least * least + greatest * greatest)
    interval = _find_interval(moments.count, moments.mean, moments.squares, added, level)
    return Interval(max(interval.low, 0.0), min(interval.high, 1.0)) if (least, greatest) == UNIT_RANGE else interval


def find_difference_interval(
    ours: Sequence[float], theirs: Sequence[float], level: float = CONFIDENCE_LEVEL
) -> Interval:
    """Return the interval of the mean of `ours` minus `theirs`, paired by position, at a two-sided level.

    Both have the same number of values, at least one.
    """
    differences = measure([a - b for a, b in zip(ours, theirs, strict=True)])
    least, greatest = _find_range(min(*ours, *theirs), max(*ours, *theirs))
    added = (0.0, (greatest - least) ** 2)
    return _find_interval(differences.count, differences.mean, differences.squares, added, level)


def find_unpaired_interval(ours: Sequence[float], theirs: Sequence[float], level: float = CONFIDENCE_LEVEL) -> Interval:
    """Return the interval of the mean of `ours` minus that of `theirs`, which are not paired, at a two-sided level.

    To each side two values are added, one at each end of the range, as Agresti and Caffo (2000) add a success and a
    failure to each sample; for values of 0 and 1 the variances are theirs. The quantile is Student's with the degrees
    of freedom of Welch (The generalization of Student's problem, Biometrika 34 (1947)), rounded down. Both sides have
    at least one value.
    """
    least, greatest = _find_range(min(*ours, *theirs), max(*ours, *theirs))
    (our_mean, ours_squared), (their_mean, theirs_squared) = (
        _find_mean_and_squared_error([*values, least, greatest]) for values in (ours, theirs)
    )
    squared = ours_squared + theirs_squared
    degrees = squared**2 / (ours_squared**2 / (len(ours) + 1) + theirs_squared**2 / (len(theirs) + 1))
    half = find_student_quantile((1 + level) / 2, int(degrees)) * math.sqrt(squared)
    return Interval(our_mean - their_mean - half, our_mean - their_mean + half)


def find_detectable_difference(interval: Interval, tasks: int, level: float, power: float = 0.8) -> float:
    """Return the difference that a comparison with the spread of this one shows with probability `power`.

    `interval` is that of a difference at the two-sided `level`, and `tasks` the number of its values: of pairs, or of
    both sides together. Shown means that its lower end is above 0.
    """
    needed = find_student_quantile((1 + level) / 2, tasks + 1)
    return (interval.high - interval.low) / 2 / needed * (needed + find_student_quantile(power, tasks + 1))


def find_student_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution for a probability from 0.5 to below 1."""
    return _find_quantile(round(probability, 12), degrees)


@lru_cache(maxsize=1024)
def _find_quantile(probability: float, degrees: int) -> float:
    if degrees > MAX_DEGREES:
        return NormalDist().inv_cdf(probability)
    low, high = 0.0, 1.0
    while _student_probability(high, degrees) < probability:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _student_probability(middle, degrees) < probability else (low, middle)
    return high


def _student_probability(value: float, degrees: int) -> float:
    """Return the probability of at most `value`, which is not negative (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(value / math.sqrt(degrees))
    cosine = math.cos(angle) ** 2
    odd = degrees % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= cosine * k / (k + 1)
    total *= math.sin(angle)
    return 0.5 + ((angle + total) / math.pi if odd else total / 2)


def _find_interval(count: int, mean: float, squares: float, added: tuple[float, float], level: float) -> Interval:
    """Return the interval of a mean. `added` are the sum and the sum of squares of the added values."""
    total = count + ADDED
    center = (count * mean + added[0]) / total
    variance = max((count * squares + added[1]) / total - center * center, 0.0)
    half = find_student_quantile((1 + level) / 2, total - 1) * math.sqrt(variance / total)
    return Interval(center - half, center + half)


def _find_mean_and_squared_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of values, and the square of its standard error."""
    mean = fmean(values)
    return mean, fmean([(value - mean) ** 2 for value in values]) / len(values)


def _find_range(least: float, greatest: float) -> tuple[float, float]:
    """Return the range in which values lie: 0 to 1 if they are within it, as rewards are, or else what was seen."""
    if least >= 0 and greatest <= 1:
        return UNIT_RANGE
    return (least, greatest) if least < greatest else (min(least, 0.0), max(greatest, 0.0))
