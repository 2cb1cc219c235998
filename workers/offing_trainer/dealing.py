"""Which rows each optimiser step of a batch trains."""

from typing import Literal

import numpy as np

from offing_trainer.batch import Places


def dealt(
    row_rollout: Places,
    rng: np.random.Generator,
    *,
    minibatches: int = 1,
    epochs: int = 1,
    by: Literal["rollouts", "rows"] = "rollouts",
) -> tuple[Places, ...]:
    """Rows of each step, ascending; every row once an epoch. `row_rollout`: (N,) whose each row is.

    Nothing is drawn for one minibatch. There are fewer steps than asked for when there is less to deal.
    """
    owner = row_rollout if by == "rollouts" else np.arange(len(row_rollout))
    return tuple(step for _ in range(epochs) for step in _epoch(owner, rng, minibatches))


def _epoch(owner: Places, rng: np.random.Generator, minibatches: int) -> list[Places]:
    units = np.unique(owner)
    if minibatches == 1:
        return [np.arange(len(owner))] if len(owner) else []
    hands = np.array_split(rng.permutation(units), min(minibatches, max(len(units), 1)))
    return [np.flatnonzero(np.isin(owner, hand)) for hand in hands if len(hand)]
