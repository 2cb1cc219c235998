"""Reciprocal rank fusion of ranked lists (Cormack, Clarke and Buettcher, SIGIR 2009).

It uses ranks only, so the scores of the lists need not be comparable.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

RRF_CONSTANT = 60
"""The constant of reciprocal rank fusion. The higher it is, the more agreement of several lists counts
against top ranks.
"""

KeyT = TypeVar("KeyT", bound=Hashable)


def compute_fused_score(ranks: Iterable[int]) -> float:
    """Return the sum of 1 / (60 + rank) over the ranks of one result, which start at 1. 0 if there are none."""
    return sum(1 / (RRF_CONSTANT + rank) for rank in ranks)


def fuse_rankings(
    rankings: Sequence[Sequence[KeyT]], weights: Sequence[float] | None = None
) -> list[tuple[KeyT, float]]:
    """Return each key of the rankings once with its fused score, best first.

    A key counts at its best rank in each ranking. `weights` has the factor of each ranking; `None` means 1. Equal
    scores keep the order in which their keys first occur.
    """
    scores: dict[KeyT, float] = defaultdict(float)
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, key in enumerate(dict.fromkeys(ranking), 1):
            scores[key] += weight / (RRF_CONSTANT + rank)
    return sorted(scores.items(), key=lambda scored: -scored[1])
