"""The minibatch split: which rows each optimizer step of a batch trains."""

from typing import Literal

import numpy as np

from offing_trainer.batch import Indices


def split_minibatches(
    row_rollout: Indices,
    rng: np.random.Generator,
    *,
    minibatches: int = 1,
    epochs: int = 1,
    unit: Literal["rollouts", "rows"] = "rollouts",
) -> tuple[Indices, ...]:
    """Return the rows of each optimizer step, ascending. Every row appears once per epoch.

    `row_rollout` is the rollout of each row, (N,). With one minibatch, nothing is drawn at random. If
    there are fewer units than minibatches, there are fewer optimizer steps.
    """
    owner = row_rollout if unit == "rollouts" else np.arange(len(row_rollout))
    return tuple(step for _ in range(epochs) for step in _split_epoch(owner, rng, minibatches))


def _split_epoch(owner: Indices, rng: np.random.Generator, minibatches: int) -> list[Indices]:
    units = np.unique(owner)
    if minibatches == 1:
        return [np.arange(len(owner))] if len(owner) else []
    chunks = np.array_split(rng.permutation(units), min(minibatches, max(len(units), 1)))
    return [np.flatnonzero(np.isin(owner, chunk)) for chunk in chunks if len(chunk)]
