"""Importance ratios and PPO's clipped objective, in double precision."""

from dataclasses import dataclass

import numpy as np

from offing_trainer.batch import Bits, Floats, Indices
from offing_trainer.grouped_statistics import count_by_index, reciprocal, sum_by_index
from offing_trainer.plugin import LossInput

MAX_LOG_RATIO_NATS = 20.0
"""Limit of log-ratios in nats, so that no exponential overflows. Beyond it a token has no gradient."""


@dataclass(frozen=True, slots=True, eq=False)
class ImportanceRatios:
    value: Floats
    log_gradient: Floats
    """Derivative of the ratio by its logarithm: the ratio, and 0 where the logarithm was limited."""


def compute_ratios(log_ratio: Floats, limit: float = MAX_LOG_RATIO_NATS) -> ImportanceRatios:
    inside = np.abs(log_ratio) <= limit
    value = np.exp(np.clip(log_ratio, -limit, limit))
    return ImportanceRatios(value, np.where(inside, value, 0.0))


def compute_token_ratios(inputs: LossInput) -> ImportanceRatios:
    """Return the ratios of the trained weights to the old ones, (P,)."""
    return compute_ratios(inputs.logprobs - inputs.columns["old_logprobs"])


def compute_sequence_ratios(
    inputs: LossInput, sequence_index: Indices, limit: float = MAX_LOG_RATIO_NATS
) -> tuple[ImportanceRatios, Floats]:
    """Return GSPO's ratios and the inverse lengths of the sequences, both (S,).

    A ratio is exp of the mean log-ratio of the sequence's tokens.
    """
    sequences = int(sequence_index.max(initial=-1)) + 1
    inverse_length = reciprocal(count_by_index(sequence_index, sequences))
    return compute_ratios(
        sum_by_index(inputs.logprobs - inputs.columns["old_logprobs"], sequence_index, sequences) * inverse_length,
        limit,
    ), inverse_length


@dataclass(frozen=True, slots=True, eq=False)
class ClippedObjective:
    """-min(ratio A, clip(ratio) A) and its derivative, with one entry per ratio."""

    value: Floats
    gradient: Floats
    """Derivative by the ratio. 0 where it is clipped."""
    clipped_low: Bits
    """Whether the ratio is clipped at the lower bound."""
    clipped_high: Bits


def clip_objective(
    ratio: Floats, advantage: Floats, low: float, high: float, dual_clip: float | None = None
) -> ClippedObjective:
    """Compute PPO's objective as a loss, with bounds 1 - low and 1 + high.

    With `dual_clip`, a token with a negative advantage costs at most dual_clip |A|. `None` means no
    such limit.
    """
    below = (ratio < 1 - low) & (advantage < 0)
    above = (ratio > 1 + high) & (advantage > 0)
    if dual_clip is not None:
        above |= (ratio > dual_clip) & (advantage < 0)
    clipped_ratio = np.where(advantage < 0, np.maximum(ratio, 1 - low), np.minimum(ratio, 1 + high))
    if dual_clip is not None:
        clipped_ratio = np.where(advantage < 0, np.minimum(clipped_ratio, dual_clip), clipped_ratio)
    return ClippedObjective(-clipped_ratio * advantage, np.where(below | above, 0.0, -advantage), below, above)
