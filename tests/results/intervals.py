"""What can be said from a few seeds: means with 95 % intervals, alone and paired by seed.

Two-sided Student intervals over seeds: with three of them an interval is 4.3 standard errors to either side. Pure.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""97.5 % quantiles for 1 to 20 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Mean:
    value: float
    half: float | None
    """Half of the interval's width. None: one seed says nothing about others."""
    seeds: int

    @property
    def low(self) -> float:
        return self.value - (self.half or 0.0)

    @property
    def high(self) -> float:
        return self.value + (self.half or 0.0)

    @property
    def settled(self) -> int:
        """1 and -1: the interval lies above and below 0. 0: it does not, or there is none."""
        if self.half is None or self.low <= 0 <= self.high:
            return 0
        return 1 if self.value > 0 else -1


def mean_of(values: Sequence[float]) -> Mean | None:
    """None: there are no values."""
    if not values:
        return None
    if len(values) == 1:
        return Mean(values[0], None, 1)
    error = statistics.stdev(values) / math.sqrt(len(values))
    return Mean(statistics.fmean(values), _quantile(len(values) - 1) * error, len(values))


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Mean | None:
    """Mean of ours less theirs over the seeds that both have. None: they share none."""
    return mean_of([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])


def _quantile(freedom: int) -> float:
    """Past the table within 0.01 of the exact one."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.5 / freedom
