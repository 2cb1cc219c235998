"""Sums, means and standard deviations by index, without a loop over groups."""

from typing import Literal

import numpy as np

from offing_trainer.batch import Floats, Indices

Ddof = Literal[0, 1]


def sum_by_index(values: Floats, index: Indices, count: int) -> Floats:
    """Return the sum of the values of each index, (count,). 0 if there are none."""
    return np.bincount(index, values, count).astype(np.float64)


def mean_by_index(values: Floats, index: Indices, count: int, weight: Floats | None = None) -> Floats:
    """Return the mean of the values of each index, (count,). 0 if there are none."""
    weights = np.ones(len(values)) if weight is None else weight
    total = sum_by_index(weights, index, count)
    return np.divide(sum_by_index(values * weights, index, count), total, out=np.zeros(count), where=total > 0)


def std_by_index(values: Floats, index: Indices, count: int, ddof: Ddof = 0, weight: Floats | None = None) -> Floats:
    """Return the standard deviation of each index, (count,). 0 if there are at most `ddof` values.

    A value of weight w counts as w values.
    """
    weights = np.ones(len(values)) if weight is None else weight
    difference = values - mean_by_index(values, index, count, weight)[index]
    free = sum_by_index(weights, index, count) - ddof
    squares = sum_by_index(weights * difference**2, index, count)
    return np.sqrt(np.divide(squares, free, out=np.zeros(count), where=free > 1e-9))


def count_by_index(index: Indices, count: int) -> Indices:
    """Return how often each index occurs, (count,)."""
    return np.bincount(index, minlength=count).astype(np.int64)


def reciprocal(values: Floats | Indices) -> Floats:
    """Return 1 / value, and 0 for 0."""
    divisors = np.asarray(values, np.float64)
    return np.divide(1.0, divisors, out=np.zeros(len(divisors)), where=divisors != 0)
