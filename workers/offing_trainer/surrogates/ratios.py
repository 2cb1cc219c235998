"""Importance ratios in double precision, and what becomes of them. The only home of that arithmetic."""

from dataclasses import dataclass

import numpy as np

from offing_trainer.batch import Bits, Floats, Places
from offing_trainer.seam import LossGiven
from offing_trainer.statistics import counts, reciprocal, sums

FARTHEST = 20.0
"""Nats that a log-ratio is cut at, so that no exponential overflows; beyond it a token has no gradient."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    value: Floats
    moves: Floats
    """Derivative of the ratio by its logarithm: the ratio, and 0 where the logarithm was cut."""


def ratios(log: Floats) -> Ratios:
    inside = np.abs(log) <= FARTHEST
    value = np.exp(np.clip(log, -FARTHEST, FARTHEST))
    return Ratios(value, np.where(inside, value, 0.0))


def token_ratios(given: LossGiven) -> Ratios:
    """(P,) of the weights being trained to the anchor."""
    return ratios(given.logp - given.columns["logp_old"])


def sequence_ratios(given: LossGiven, of: Places) -> tuple[Ratios, Floats]:
    """GSPO's: (S,) exp of the mean log-ratio of each sequence's tokens, and 1 / tokens of it."""
    sequences = int(of.max(initial=-1)) + 1
    share = reciprocal(counts(of, sequences))
    return ratios(sums(given.logp - given.columns["logp_old"], of, sequences) * share), share


@dataclass(frozen=True, slots=True, eq=False)
class Clipped:
    """-min(ratio A, clip(ratio) A) and what it depends on; one entry a ratio."""

    value: Floats
    slope: Floats
    """By the ratio; 0 where it is clipped."""
    low: Bits
    """Held at the lower bound."""
    high: Bits


def clipped(ratio: Floats, advantage: Floats, low: float, high: float, dual: float | None = None) -> Clipped:
    """PPO's objective as a loss, with bounds 1 - low and 1 + high.

    `dual`: with a negative advantage a token costs at most dual |A|. None: no such limit.
    """
    below = (ratio < 1 - low) & (advantage < 0)
    above = (ratio > 1 + high) & (advantage > 0)
    if dual is not None:
        above |= (ratio > dual) & (advantage < 0)
    held = np.where(advantage < 0, np.maximum(ratio, 1 - low), np.minimum(ratio, 1 + high))
    if dual is not None:
        held = np.where(advantage < 0, np.minimum(held, dual), held)
    return Clipped(-held * advantage, np.where(below | above, 0.0, -advantage), below, above)
