"""Sums, means and deviations by group, without a loop over groups. The only home of that arithmetic."""

from typing import Literal

import numpy as np

from offing_trainer.batch import Floats, Places

Ddof = Literal[0, 1]


def sums(values: Floats, of: Places, count: int) -> Floats:
    """(count,) sum of the values of each index; 0 where there is none."""
    return np.bincount(of, values, count).astype(np.float64)


def means(values: Floats, of: Places, count: int, weight: Floats | None = None) -> Floats:
    """(count,) mean of each index; 0 where there is nothing."""
    weights = np.ones(len(values)) if weight is None else weight
    total = sums(weights, of, count)
    return np.divide(sums(values * weights, of, count), total, out=np.zeros(count), where=total > 0)


def deviations(values: Floats, of: Places, count: int, ddof: Ddof = 0, weight: Floats | None = None) -> Floats:
    """(count,) standard deviation of each index; 0 where there are not more than `ddof` values.

    A value of weight w counts as w values.
    """
    weights = np.ones(len(values)) if weight is None else weight
    apart = values - means(values, of, count, weight)[of]
    free = sums(weights, of, count) - ddof
    squares = sums(weights * apart**2, of, count)
    return np.sqrt(np.divide(squares, free, out=np.zeros(count), where=free > 1e-9))


def counts(of: Places, count: int) -> Places:
    """(count,) how often each index is there."""
    return np.bincount(of, minlength=count).astype(np.int64)


def reciprocal(values: Floats | Places) -> Floats:
    """1 / value, and 0 for 0."""
    found = np.asarray(values, np.float64)
    return np.divide(1.0, found, out=np.zeros(len(found)), where=found != 0)
