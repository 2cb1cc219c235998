"""Means with 95 % confidence intervals over a few seeds, unpaired and paired by seed.

The intervals are two-sided Student's t intervals. With three seeds, an interval is 4.3 standard errors to each side.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offing.core.confidence_interval import find_student_quantile

ROUNDING = 1e-9
"""Values that are closer than this differ by rounding alone."""


@dataclass(frozen=True, slots=True)
class Mean:
    value: float
    half: float | None
    """Half of the interval's width. `None` means that there is none: one seed, or all seeds have the same value, which
    says nothing of how far another seed would be from it."""
    seeds: int

    @property
    def low(self) -> float:
        return self.value - (self.half or 0.0)

    @property
    def high(self) -> float:
        return self.value + (self.half or 0.0)

    @property
    def settled(self) -> int:
        """1 if the interval lies above 0, -1 if it lies below 0, and 0 if it contains 0 or does not exist."""
        if self.half is None or self.low <= 0 <= self.high:
            return 0
        return 1 if self.value > 0 else -1

    @property
    def detectable(self) -> float | None:
        """The difference that as many seeds with this spread show in 80 of 100 cases. `None` without an interval.

        It is meaningful for a mean of paired differences. Shown means that its interval lies above 0.
        """
        if self.half is None:
            return None
        needed, power = (find_student_quantile(p, self.seeds - 1) for p in (0.975, 0.8))
        return self.half / needed * (needed + power)


def mean_of(values: Sequence[float]) -> Mean | None:
    """Return the mean. `None` means that there are no values."""
    if not values:
        return None
    if max(values) - min(values) < ROUNDING:
        return Mean(values[0], None, len(values))
    error = statistics.stdev(values) / math.sqrt(len(values))
    return Mean(statistics.fmean(values), find_student_quantile(0.975, len(values) - 1) * error, len(values))


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Mean | None:
    """Return the mean of `ours` minus `theirs` over the seeds that both have. `None` means that they share none."""
    return mean_of([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])
