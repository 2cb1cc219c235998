"""Only rollouts at both ends of the advantages are trained, more as the training goes on: D3S's upper level."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats, Places
from offing_trainer.seam import Options, Plugin, RowsGiven, Seam, State, no_state
from offing_trainer.statistics import counts, means


class MaxVariance(Options):
    share: float = Field(default=0.5, gt=0, le=1)
    """Of the step's rollouts, when the training begins."""
    final_share: float = Field(default=1.0, gt=0, le=1)
    """When it ends; in between it changes in a straight line."""


def max_variance(options: MaxVariance, given: RowsGiven) -> tuple[Places, State]:
    """All rows of the rollouts kept. Their advantages stay as they are: nothing is standardised again."""
    batch = given.batch
    advantage = means(given.advantage, batch.token_rollout, batch.rollouts)
    there = np.flatnonzero(counts(batch.token_rollout, batch.rollouts))
    share = (1 - given.progress) * options.share + given.progress * options.final_share
    most = int(np.ceil(share * len(there)))
    names = np.array(batch.rollout)[there] if len(there) else np.empty(0, np.str_)
    order = there[np.lexsort((names, advantage[there]))]
    kept = np.zeros(batch.rollouts, np.bool_)
    kept[widest(advantage, order, most)] = True
    return np.flatnonzero(kept[batch.row_rollout]), no_state()


def widest(values: Floats, order: Places, most: int) -> Places:
    """The `most` of `order`, ascending by value, whose values vary most: some from its start and the rest from its end.

    No other choice of so many varies more. Of choices that vary alike, the one with most from the end.
    """
    n = len(order)
    if most >= n:
        return order
    ascending = values[order]
    total, squares = (np.concatenate(([0.0], np.cumsum(part))) for part in (ascending, ascending**2))
    low: Places = np.arange(most + 1)
    first = n - (most - low)
    mean = (total[low] + total[n] - total[first]) / most
    spread = (squares[low] + squares[n] - squares[first]) / most - mean**2
    best = int(np.argmax(spread > spread.max() - 1e-12))
    return np.concatenate((order[:best], order[n - (most - best) :]))


PLUGIN = Plugin(
    "max-variance",
    Seam.SELECT,
    "D3S: the N_pos largest and N_neg smallest advantages, N relaxed with progress",
    max_variance,
    MaxVariance,
    stage="rows",
)
