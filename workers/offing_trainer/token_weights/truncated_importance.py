"""Truncated importance sampling, which corrects for an engine or version other than the old policy.

The ratio is old / recorded probability, for `decoupled`, where the ratio of the clip is trained /
old. It is computed in logarithms, so that no product over many tokens overflows.
"""

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from offing_trainer.batch import Floats, Indices, TrainingBatch
from offing_trainer.grouped_statistics import count_by_index, reciprocal, sum_by_index
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, TokenWeightInput
from offing_trainer.surrogates.ratios import compute_ratios


class TruncatedImportanceOptions(PluginOptions):
    unit: Literal["tokens", "turns", "rows"] = "tokens"
    """The unit that has one ratio: each token, or the sequence of a turn or a row."""
    geometric_mean: bool = False
    """Use the geometric mean of a sequence's token ratios instead of their product."""
    mode: Literal["truncate", "mask"] = "truncate"
    """`truncate` limits ratios to `max_ratio`. `mask` does not train what is outside the bounds."""
    min_ratio: float = Field(default=0.0, ge=0)
    """Used by `mask` only."""
    max_ratio: float = Field(default=2.0, gt=0)

    @model_validator(mode="after")
    def _check_bounds(self) -> "TruncatedImportanceOptions":
        if self.min_ratio >= self.max_ratio:
            raise ValueError("low must be below high")
        return self


def truncated_importance(options: TruncatedImportanceOptions, inputs: TokenWeightInput) -> Floats:
    log = inputs.columns["old_logprobs"] - inputs.batch.behavior_logprobs
    if options.unit != "tokens":
        log = _aggregate_log_ratios(
            log, _sequence_index(inputs.batch, options.unit), geometric_mean=options.geometric_mean
        )
    ratio = compute_ratios(log).value
    if options.mode == "truncate":
        return np.minimum(ratio, options.max_ratio)
    return np.where((ratio >= options.min_ratio) & (ratio <= options.max_ratio), ratio, 0.0)


def _sequence_index(batch: TrainingBatch, unit: str) -> Indices:
    """Return the index of each token's sequence, (P,). A turn in a row that is trained twice counts twice."""
    if unit == "rows":
        return batch.token_row
    _, of = np.unique(batch.token_turn + batch.num_turns * batch.token_row, return_inverse=True)
    return of


def _aggregate_log_ratios(log_ratio: Floats, sequence_index: Indices, *, geometric_mean: bool) -> Floats:
    sequences = int(sequence_index.max(initial=-1)) + 1
    total = sum_by_index(log_ratio, sequence_index, sequences)
    return (total * reciprocal(count_by_index(sequence_index, sequences)) if geometric_mean else total)[sequence_index]


PLUGIN = Plugin(
    "truncated-importance",
    PluginKind.TOKEN_WEIGHT,
    "decoupled PPO, AReaL, arXiv 2505.24298; truncated importance sampling: min(p_anchor / p_behavior, high)",
    truncated_importance,
    TruncatedImportanceOptions,
    needs=frozenset({"old_logprobs", "behavior_logprobs"}),
)
