"""Averaging rules: the weight of each token in the loss of a step.

Weights refer to what is trained in the step, so they sum to 1 regardless of what was left out, including
masked rows. If the unit of a rule is a sum, the weights of its units sum to 1.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats, TrainingBatch
from offing_trainer.grouped_statistics import count_by_index, reciprocal
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, TokenWeightInput


class RowSumOptions(PluginOptions):
    fixed_length: Annotated[float, Field(gt=0)] | None = None
    """Divide the sum of each row by this number, the same for all rows. `None` does not divide."""
    mean_over_rows: bool = True
    """Use the mean over rows instead of their sum."""


def token_mean(options: PluginOptions, inputs: TokenWeightInput) -> Floats:
    """Return 1 / the number of tokens of the step."""
    return np.full(inputs.batch.num_tokens, 1 / max(inputs.batch.num_tokens, 1))


def row_mean(options: PluginOptions, inputs: TokenWeightInput) -> Floats:
    """Return weights for the mean over rows of the mean over their tokens."""
    return _row_weight(inputs.batch) * _token_weight_in_row(inputs.batch)


def row_sum(options: RowSumOptions, inputs: TokenWeightInput) -> Floats:
    """Return weights for the mean over rows of the sum over their tokens.

    With a fixed length, this is Dr. GRPO's rule.
    """
    row_weight = _row_weight(inputs.batch) if options.mean_over_rows else 1.0
    return np.full(inputs.batch.num_tokens, row_weight / (options.fixed_length or 1.0))


def rollout_mean(options: PluginOptions, inputs: TokenWeightInput) -> Floats:
    """Return weights for the mean over rollouts of the mean over their tokens."""
    each = count_by_index(inputs.batch.token_rollout, inputs.batch.num_rollouts)
    return reciprocal(each)[inputs.batch.token_rollout] / max(int((each > 0).sum()), 1)


def rollout_turn_token(options: PluginOptions, inputs: TokenWeightInput) -> Floats:
    """Return 1 / (Q G T_i |a|).

    Every group has the same weight, and in it every rollout, then every turn, then every token.
    """
    batch = inputs.batch
    turn_weight, each = _turn_weight(batch), count_by_index(batch.token_turn, batch.num_turns)
    return (turn_weight * reciprocal(each))[batch.token_turn] * _rescale_factor(turn_weight, each > 0)


def segment_sum(options: PluginOptions, inputs: TokenWeightInput) -> Floats:
    """Return 1 / (Q |G| |y|), DCPO's sum of surrogates.

    Each rollout counts as often as it has segments.
    """
    batch = inputs.batch
    rollout_weight = _rollout_weight(batch)
    there = count_by_index(batch.token_rollout, batch.num_rollouts) > 0
    had = count_by_index(batch.turn_rollout[batch.turn_token_counts > 0], batch.num_rollouts) > 0
    scale = rollout_weight[had].sum() / rollout_weight[there].sum() if there.any() else 0.0
    return (rollout_weight[batch.row_rollout] * _token_weight_of_rows(batch))[batch.token_row] * scale


def _row_weight(batch: TrainingBatch) -> float:
    return 1 / max(int((count_by_index(batch.token_row, batch.num_rows) > 0).sum()), 1)


def _token_weight_of_rows(batch: TrainingBatch) -> Floats:
    return reciprocal(count_by_index(batch.token_row, batch.num_rows))


def _token_weight_in_row(batch: TrainingBatch) -> Floats:
    return _token_weight_of_rows(batch)[batch.token_row]


def _rollout_weight(batch: TrainingBatch) -> Floats:
    """Return 1 / (Q G), (R,). Rollouts without a token also count in G."""
    return reciprocal(count_by_index(batch.rollout_group, batch.num_groups))[batch.rollout_group] / max(
        batch.num_groups, 1
    )


def _turn_weight(batch: TrainingBatch) -> Floats:
    """Return 1 / (Q G T_i), (T,). 0 for a turn that is only context."""
    trained = batch.turn_token_counts > 0
    turns = count_by_index(batch.turn_rollout[trained], batch.num_rollouts)
    return np.where(trained, (_rollout_weight(batch) * reciprocal(turns))[batch.turn_rollout], 0.0)


def _rescale_factor(weight: Floats, is_trained: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """Return the factor that compensates for units that are in other steps or were left out."""
    total_weight = weight[is_trained].sum()
    return float(weight.sum() / total_weight) if total_weight > 0 else 0.0


TOKEN_MEAN = Plugin("token-mean", PluginKind.TOKEN_WEIGHT, "DAPO, arXiv 2503.14476, and SUPO: 1 / tokens", token_mean)
ROW_MEAN = Plugin(
    "row-mean", PluginKind.TOKEN_WEIGHT, "GRPO, arXiv 2402.03300: 1 / rows, 1 / tokens of the row", row_mean
)
ROW_SUM = Plugin("row-sum", PluginKind.TOKEN_WEIGHT, "Dr. GRPO, arXiv 2503.20783: 1 / rows", row_sum, RowSumOptions)
ROLLOUT_MEAN = Plugin(
    "rollout-mean",
    PluginKind.TOKEN_WEIGHT,
    "Agent Lightning 1.0: 1 / rollouts, 1 / tokens of the rollout",
    rollout_mean,
)
ROLLOUT_TURN_TOKEN = Plugin(
    "rollout-turn-token",
    PluginKind.TOKEN_WEIGHT,
    "AgentFlow (Flow-GRPO), arXiv 2510.05592: 1 / (Q G T_i |a|)",
    rollout_turn_token,
)
SEGMENT_SUM = Plugin(
    "segment-sum", PluginKind.TOKEN_WEIGHT, "MemAct (DCPO), arXiv 2510.12635: 1 / (Q |G| |y|)", segment_sum
)
