"""Arithmetic along the turns of rollouts, without a loop over rollouts.

The only home of backward recursions, and of what each turn was paid. Knows no plug-in.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from offing_trainer.batch import OUTCOMES, Batch, Bits, Floats, Places
from offing_trainer.seam import Rewards


def opens(owner: npt.NDArray[Any]) -> Bits:
    """Where a run of equal entries begins; `owner` has its equals side by side."""
    return np.concatenate((np.ones(min(1, len(owner)), np.bool_), owner[1:] != owner[:-1]))


def closes(owner: npt.NDArray[Any]) -> Bits:
    """Where a run of equal entries ends."""
    return np.concatenate((owner[1:] != owner[:-1], np.ones(min(1, len(owner)), np.bool_)))


def following(values: Floats, last: Bits, beyond: Floats) -> Floats:
    """The entry after each; where `last`, that of `beyond`."""
    return np.where(last, beyond, np.append(values[1:], np.nan)) if len(values) else values


def backward(amount: Floats, carry: Floats, owner: npt.NDArray[Any]) -> Floats:
    """x[t] = amount[t] + carry[t] * x[t + 1] within each run of equal `owner`, and x = amount at its end.

    As many numpy steps as the longest run is long.
    """
    result = amount.astype(np.float64, copy=True)
    last = np.flatnonzero(closes(owner))
    lengths = np.diff(np.concatenate(([-1], last)))
    for back in range(1, int(lengths.max(initial=0))):
        at = last[lengths > back] - back
        result[at] += carry[at] * result[at + 1]
    return result


def turn_rewards(batch: Batch, rewards: Rewards) -> Floats:
    """(T,) what each turn was paid; a rollout's own reward is paid at its last turn. NaN: its rollout has no score."""
    if rewards.by_turn:
        return rewards.turn.copy()
    ends = closes(batch.turn_rollout)
    paid = rewards.turn + np.where(ends, rewards.rollout[batch.turn_rollout], 0.0)
    unknown = np.isnan(rewards.rollout)[batch.turn_rollout]
    return np.where(unknown, np.nan, paid)


def taught(batch: Batch, rewards: Rewards) -> tuple[Places, Floats]:
    """Turns that have a token to train, of rollouts that have a score, and what each was paid.

    Turns of context alone are no steps of the policy: what they were paid counts to the turn before, or the first.
    """
    paid = turn_rewards(batch, rewards)
    there = np.flatnonzero((batch.turn_tokens > 0) & ~np.isnan(paid))
    if not len(there):
        return there, paid[there]
    before = np.searchsorted(there, np.arange(batch.turns), "right") - 1
    strange = (before < 0) | (batch.turn_rollout[there[before]] != batch.turn_rollout)
    place = np.minimum(before + strange, len(there) - 1)
    mine = (batch.turn_rollout[there[place]] == batch.turn_rollout) & ~np.isnan(paid)
    return there, np.bincount(place[mine], paid[mine], len(there)).astype(np.float64)


def cut_off(batch: Batch) -> Bits:
    """(T,) a limit ended the turn's rollout; it did not end of its own accord."""
    return (batch.outcome == OUTCOMES["truncated"])[batch.turn_rollout]


def has_token(batch: Batch, tokens: Bits) -> Bits:
    """(T,) whether any of the turn's tokens is one of these."""
    return np.bincount(batch.token_turn[tokens], minlength=batch.turns) > 0


def turn_means(batch: Batch, values: Floats) -> Floats:
    """(T,) mean over the tokens of each turn. NaN: the turn has none."""
    counts = np.bincount(batch.token_turn, minlength=batch.turns)
    sums = np.bincount(batch.token_turn, values, batch.turns)
    return np.divide(sums, counts, out=np.full(batch.turns, np.nan), where=counts > 0)


def turns_in(batch: Batch, rows: Places) -> Places:
    """The turns of these rows, row after row and each row's in their own order, as `Forwarded.values` has them."""
    order = np.lexsort((np.arange(batch.turns), batch.turn_row))
    starts, ends = (np.searchsorted(batch.turn_row[order], rows, side) for side in ("left", "right"))
    return np.concatenate([order[a:b] for a, b in zip(starts, ends, strict=True)]) if len(rows) else order[:0]


def standardised(values: Floats, among: Bits, epsilon: float = 1e-8) -> Floats:
    """Z-scores among some entries with the population's deviation; 0 elsewhere, and 0 for one entry alone."""
    result = np.zeros_like(values)
    if among.sum() > 1:
        known = values[among]
        result[among] = (known - known.mean()) / (known.std() + epsilon)
    return result
