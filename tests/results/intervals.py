"""Means with 95 % confidence intervals over a few seeds, unpaired and paired by seed.

The intervals are two-sided Student's t intervals. With three seeds, an interval is 4.3 standard errors to each side.
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
    """Half of the interval's width. `None` means that there is only one seed."""
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


def mean_of(values: Sequence[float]) -> Mean | None:
    """Return the mean. `None` means that there are no values."""
    if not values:
        return None
    if len(values) == 1:
        return Mean(values[0], None, 1)
    error = statistics.stdev(values) / math.sqrt(len(values))
    return Mean(statistics.fmean(values), _quantile(len(values) - 1) * error, len(values))


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Mean | None:
    """Return the mean of `ours` minus `theirs` over the seeds that both have. `None` means that they share none."""
    return mean_of([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])


def _quantile(freedom: int) -> float:
    """Beyond the table, the error is at most 0.01."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.5 / freedom
