"""Arithmetic along the turns of rollouts, without a loop over rollouts.

It has backward recursions and the rewards of turns.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from offing_trainer.batch import OUTCOME_CODES, Bits, Floats, Indices, TrainingBatch
from offing_trainer.plugin import Rewards


def mark_first(owner: npt.NDArray[Any]) -> Bits:
    """Return whether each entry is the first of a range of equal entries, which must be adjacent."""
    return np.concatenate((np.ones(min(1, len(owner)), np.bool_), owner[1:] != owner[:-1]))


def mark_last(owner: npt.NDArray[Any]) -> Bits:
    """Return whether each entry is the last of a range of equal entries."""
    return np.concatenate((owner[1:] != owner[:-1], np.ones(min(1, len(owner)), np.bool_)))


def shift_from_next(values: Floats, is_last: Bits, final: Floats) -> Floats:
    """Return the entry after each entry, or that of `final` where `is_last`."""
    return np.where(is_last, final, np.append(values[1:], np.nan)) if len(values) else values


def accumulate_backward(amount: Floats, decay: Floats, owner: npt.NDArray[Any]) -> Floats:
    """Compute x[t] = amount[t] + decay[t] * x[t + 1] within each range of equal `owner`.

    At the end of a range, x = amount. This takes as many numpy steps as the longest range has entries.
    """
    result = amount.astype(np.float64, copy=True)
    last = np.flatnonzero(mark_last(owner))
    lengths = np.diff(np.concatenate(([-1], last)))
    for back in range(1, int(lengths.max(initial=0))):
        at = last[lengths > back] - back
        result[at] += decay[at] * result[at + 1]
    return result


def compute_turn_rewards(batch: TrainingBatch, rewards: Rewards) -> Floats:
    """Return the reward of each turn, (T,). The last turn includes the rollout's own reward.

    NaN means that the rollout has no score.
    """
    if rewards.by_turn:
        return rewards.turn.copy()
    ends = mark_last(batch.turn_rollout)
    turn_reward = rewards.turn + np.where(ends, rewards.rollout[batch.turn_rollout], 0.0)
    unknown = np.isnan(rewards.rollout)[batch.turn_rollout]
    return np.where(unknown, np.nan, turn_reward)


def select_trained_turns(batch: TrainingBatch, rewards: Rewards) -> tuple[Indices, Floats]:
    """Return the turns with trained tokens of scored rollouts, and their rewards.

    Turns that are only context are no actions of the policy. Their rewards are added to the turn
    before, or to the first one.
    """
    turn_reward = compute_turn_rewards(batch, rewards)
    trained_turns = np.flatnonzero((batch.turn_token_counts > 0) & ~np.isnan(turn_reward))
    if not len(trained_turns):
        return trained_turns, turn_reward[trained_turns]
    before = np.searchsorted(trained_turns, np.arange(batch.num_turns), "right") - 1
    other_rollout = (before < 0) | (batch.turn_rollout[trained_turns[before]] != batch.turn_rollout)
    entry = np.minimum(before + other_rollout, len(trained_turns) - 1)
    is_counted = (batch.turn_rollout[trained_turns[entry]] == batch.turn_rollout) & ~np.isnan(turn_reward)
    return trained_turns, np.bincount(entry[is_counted], turn_reward[is_counted], len(trained_turns)).astype(np.float64)


def is_truncated(batch: TrainingBatch) -> Bits:
    """Return whether a limit ended each turn's rollout, (T,)."""
    return (batch.outcome == OUTCOME_CODES["truncated"])[batch.turn_rollout]


def has_token(batch: TrainingBatch, tokens: Bits) -> Bits:
    """Return whether each turn has one of these tokens, (T,)."""
    return np.bincount(batch.token_turn[tokens], minlength=batch.num_turns) > 0


def mean_per_turn(batch: TrainingBatch, values: Floats) -> Floats:
    """Return the mean over the tokens of each turn, (T,). NaN means that it has no tokens."""
    counts = np.bincount(batch.token_turn, minlength=batch.num_turns)
    sums = np.bincount(batch.token_turn, values, batch.num_turns)
    return np.divide(sums, counts, out=np.full(batch.num_turns, np.nan), where=counts > 0)


def turn_indices(batch: TrainingBatch, rows: Indices) -> Indices:
    """Return the turns of these rows, row by row and in order, as in `ForwardResult.values`."""
    order = np.lexsort((np.arange(batch.num_turns), batch.turn_row))
    starts, ends = (np.searchsorted(batch.turn_row[order], rows, side) for side in ("left", "right"))
    return np.concatenate([order[a:b] for a, b in zip(starts, ends, strict=True)]) if len(rows) else order[:0]


def standardize(values: Floats, mask: Bits, epsilon: float = 1e-8) -> Floats:
    """Return z-scores over the entries in `mask`, with the population's standard deviation.

    Other entries are 0, and so is a single entry.
    """
    result = np.zeros_like(values)
    if mask.sum() > 1:
        selected = values[mask]
        result[mask] = (selected - selected.mean()) / (selected.std() + epsilon)
    return result
