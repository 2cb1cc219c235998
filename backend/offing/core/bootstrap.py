"""The bootstrap interval of a mean, the one interval of evaluations and promotion gates.

The interval is that of the percentile method (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13).
"""

from collections.abc import Sequence
from random import Random
from statistics import fmean

BOOTSTRAP_RESAMPLES = 2000

CONFIDENCE_LEVEL = 0.95


def bootstrap_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the bootstrap interval of the mean of values. The same seed gives the same interval.

    Without values, both ends are 0.
    """
    if not values:
        return 0.0, 0.0
    if min(values) == max(values):
        return values[0], values[0]
    rng = Random(seed)
    drawn = sorted(fmean(rng.choices(values, k=len(values))) for _ in range(BOOTSTRAP_RESAMPLES))
    cut = round((1 - CONFIDENCE_LEVEL) / 2 * BOOTSTRAP_RESAMPLES)
    return drawn[cut], drawn[BOOTSTRAP_RESAMPLES - 1 - cut]
