"""Compare a canary with the active version by the results of their runs. Pure.

The sizes at which both are compared are fixed, so that a verdict does not depend on how often somebody looks. At each
size, the first results of each version are compared, in the order in which they were completed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from offing.core.confidence_interval import (
    CONFIDENCE_LEVEL,
    Interval,
    find_detectable_difference,
    find_unpaired_interval,
)

FIRST_LOOK_TASKS = 20
"""Number of tasks of each version at the first look."""


class CanaryVerdict(StrEnum):
    """What a look at a canary shows."""

    BETTER = "better"
    """The interval of the difference is above 0."""
    WORSE = "worse"
    """The interval of the difference is below the margin."""
    UNDECIDED = "undecided"
    """Neither."""


@dataclass(frozen=True, slots=True)
class CanaryLook:
    """A canary compared with the active version at one size."""

    look: int
    """Number of this look at canaries of the policy with the same active version, from 1 on."""
    tasks: int
    """Number of tasks of each version."""
    canary: float
    """Mean reward."""
    active: float
    difference: float
    low: float
    """Lower end of the interval of the difference."""
    high: float
    level: float
    """Two-sided level of the interval."""
    detectable_difference: float
    """The difference that as many tasks with this spread show in 80 of 100 cases."""
    verdict: CanaryVerdict


def find_look_tasks(number: int) -> int:
    """Return the number of tasks of each version at a look at one canary, from 1 on: 20, 30, 45, 68, 102, ..."""
    tasks = FIRST_LOOK_TASKS
    for _ in range(number - 1):
        tasks = -(-tasks * 3 // 2)
    return tasks


def find_canary_level(look: int) -> float:
    """Return the two-sided level of the interval at a look, from 1 on.

    It is wrong with probability 0.05 / (n (n + 1)) at look n, as the lower end of the promotion gate's is. Here either
    end can decide, so that all looks together are wrong about an equal canary with probability 0.05 at most.
    """
    return 1 - (1 - CONFIDENCE_LEVEL) / (look * (look + 1))


def compare_canary(
    canary: Sequence[float], active: Sequence[float], *, done: int = 0, looks: int = 0, margin: float = 0.0
) -> list[CanaryLook]:
    """Return the looks that are due, up to the first one that finds the canary worse.

    `canary` and `active` are rewards by task in the order of completion. `done` is the number of earlier looks at this
    canary, and `looks` that of all canaries with the same active version, these included. The canary is worse if it
    is certain that it is worse by more than `margin`.
    """
    due: list[CanaryLook] = []
    while (tasks := find_look_tasks(done + len(due) + 1)) <= min(len(canary), len(active)):
        due.append(_look(canary[:tasks], active[:tasks], looks + len(due) + 1, margin))
        if due[-1].verdict is CanaryVerdict.WORSE:
            break
    return due


def _look(canary: Sequence[float], active: Sequence[float], look: int, margin: float) -> CanaryLook:
    level = find_canary_level(look)
    interval = find_unpaired_interval(canary, active, level)
    return CanaryLook(
        look=look,
        tasks=len(canary),
        canary=fmean(canary),
        active=fmean(active),
        difference=fmean(canary) - fmean(active),
        low=interval.low,
        high=interval.high,
        level=level,
        detectable_difference=find_detectable_difference(interval, 2 * len(canary), level),
        verdict=_find_verdict(interval, margin),
    )


def _find_verdict(interval: Interval, margin: float) -> CanaryVerdict:
    if interval.low > 0:
        return CanaryVerdict.BETTER
    return CanaryVerdict.WORSE if interval.high < -margin else CanaryVerdict.UNDECIDED
