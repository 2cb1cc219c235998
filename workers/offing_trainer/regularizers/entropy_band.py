"""EPO: keeps entropy near its past level at the same turn, as a hinge loss that has a gradient.

The state table holds the mean entropies of past optimizer steps by turn number, and the band of the
current step, which is computed from the past ones.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from offing_trainer.batch import Floats, Indices, TrainingBatch
from offing_trainer.grouped_statistics import count_by_index, mean_by_index, reciprocal, sum_by_index
from offing_trainer.plugin import (
    LossInput,
    LossTerm,
    Plugin,
    PluginKind,
    PluginOptions,
    PluginState,
    PluginTrait,
    StepStatisticsInput,
)
from offing_trainer.turn_math import mean_per_turn

HISTORY_TABLE = "entropy-history"


class EntropyBandOptions(PluginOptions):
    low: float = Field(default=0.8, ge=0)
    """Lower bound, as a multiple of the mean of past steps. `high` is the upper bound."""
    high: float = Field(default=1.2, ge=0)
    unit: Literal["tokens", "turns"] = "tokens"
    """Whose entropy must be in the band: that of each token, or the mean of each turn."""
    final_decay: float = Field(default=0.0, ge=0, le=1)
    """Fraction of the strength that is lost by the end of the training."""

    @model_validator(mode="after")
    def _check_bounds(self) -> "EntropyBandOptions":
        if self.low > self.high:
            raise ValueError("low must not exceed high")
        return self


def entropy_band(options: EntropyBandOptions, inputs: LossInput) -> LossTerm:
    """Compute the sum of weight (max(0, H - high) + max(0, low - H)).

    A turn number without past steps adds nothing.
    """
    table = inputs.state[HISTORY_TABLE]
    center = _band_centers(inputs.batch, table["band"])
    known = ~np.isnan(center)
    low, high = np.where(known, options.low * center, -np.inf), np.where(known, options.high * center, np.inf)
    of = _unit_index(inputs.batch, options.unit)
    units = int(of.max(initial=-1)) + 1
    level = mean_by_index(inputs.entropy, of, units)[of]
    above, below = np.maximum(level - high, 0.0), np.maximum(low - level, 0.0)
    weight = table["strength"] * inputs.weight
    gradient = sum_by_index(weight * ((level > high) * 1.0 - (level < low)), of, units) * reciprocal(
        count_by_index(of, units)
    )
    outside = float(((above > 0) | (below > 0)).sum())
    return LossTerm(float(weight @ (above + below)), np.zeros(len(weight)), gradient[of], {"outside": outside})


def update_history(options: EntropyBandOptions, inputs: StepStatisticsInput) -> PluginState:
    """Add the step's sampled entropies to the history, and compute the band from the past ones."""
    before: Mapping[str, Any] = inputs.state.get(HISTORY_TABLE, {}).get("turns", {})
    entropy = mean_per_turn(inputs.batch, inputs.batch.entropy)
    there = ~np.isnan(entropy)
    numbers = inputs.batch.turn_number[there]
    seen = mean_by_index(entropy[there], numbers, int(numbers.max(initial=-1)) + 1)
    after = dict(before)
    for number in np.unique(numbers).tolist():
        total, steps = before.get(str(number), (0.0, 0))
        after[str(number)] = [total + float(seen[number]), steps + 1]
    band = {number: total / steps for number, (total, steps) in before.items()}
    return {HISTORY_TABLE: {"turns": after, "band": band, "strength": 1.0 - options.final_decay * inputs.progress}}


def _band_centers(batch: TrainingBatch, band: Mapping[str, float]) -> Floats:
    """Return the center of each token's band, (P,). NaN means unknown."""
    by_turn = np.array([band.get(str(number), np.nan) for number in batch.turn_number.tolist()], np.float64)
    return by_turn[batch.token_turn] if batch.num_turns else np.empty(0)


def _unit_index(batch: TrainingBatch, unit: str) -> Indices:
    """Return the index of each token's unit, (P,). A turn in a row that is trained twice counts twice."""
    if unit == "tokens":
        return np.arange(batch.num_tokens)
    _, of = np.unique(batch.token_turn + batch.num_turns * batch.token_row, return_inverse=True)
    return of


PLUGIN = Plugin(
    "entropy-band",
    PluginKind.REGULARIZER,
    "EPO, arXiv 2509.22576, with a hinge for its constant penalty",
    entropy_band,
    EntropyBandOptions,
    needs=frozenset({"entropy"}),
    step_statistics=update_history,
    state_tables=frozenset({HISTORY_TABLE}),
    traits=frozenset({PluginTrait.ENTROPY_CONTROL}),
)
