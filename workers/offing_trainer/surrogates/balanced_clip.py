"""BAPO: a clip whose bounds widen until positive advantages have their fraction of the gradient.

The fraction is over the tokens that keep a gradient after the clip, so widening a bound never
lowers it. This corrects the paper, which also counts clipped tokens. Bounds are computed for each
optimizer step, from its rows under the weights at the start of the training step. With `decoupled`
these are also the old weights: every ratio is 1, and the bounds have little effect.
"""

import numpy as np
from pydantic import Field, model_validator

from offing_trainer.batch import Floats
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
from offing_trainer.surrogates.ratios import clip_objective, compute_ratios, compute_token_ratios

BOUNDS_TABLE = "clip-bounds"


class BalancedClipOptions(PluginOptions):
    target_fraction: float = Field(default=0.5, ge=0, le=1)
    """Fraction of the gradient that positive advantages should have. `0` keeps the initial bounds."""
    low: float = Field(default=0.6, gt=0, lt=1)
    """Initial lower bound of the ratio."""
    max_low: float = Field(default=0.9, gt=0, le=1)
    high: float = Field(default=1.2, ge=1)
    max_high: float = Field(default=3.0, ge=1)
    bound_step: float = Field(default=0.05, gt=0)
    """Step size of both bounds."""
    dual_clip: float | None = Field(default=3.0, gt=1)
    """Maximum loss of a token with a negative advantage, in multiples of |A|. `None` means no limit."""

    @model_validator(mode="after")
    def _check_bounds(self) -> "BalancedClipOptions":
        if self.low > self.max_low or self.high > self.max_high:
            raise ValueError("low must not exceed max_low, and high must not exceed max_high")
        return self


def balanced_clip(options: BalancedClipOptions, inputs: LossInput) -> LossTerm:
    bounds = inputs.state[BOUNDS_TABLE]
    ratio = compute_token_ratios(inputs)
    clipped = clip_objective(ratio.value, inputs.advantage, 1 - bounds["low"], bounds["high"] - 1, options.dual_clip)
    live = inputs.weight > 0
    metrics = {
        "clip_low": float((clipped.clipped_low & live).sum()),
        "clip_high": float((clipped.clipped_high & live).sum()),
    }
    return LossTerm(
        float(inputs.weight @ clipped.value), inputs.weight * clipped.gradient * ratio.log_gradient, metrics=metrics
    )


def update_bounds(options: BalancedClipOptions, inputs: StepStatisticsInput) -> PluginState:
    """Find the narrowest bounds that reach the target fraction.

    The lower bound moves first, then the upper one.
    """
    ratio = compute_ratios(inputs.columns["start_logprobs"] - inputs.columns["old_logprobs"]).value
    lows, highs = (_bound_path(*edge, options.bound_step) for edge in _bound_ranges(options))
    path = [(low, options.high) for low in lows] + [(options.max_low, high) for high in highs[1:]]
    fractions = (positive_fraction(options, ratio, inputs.advantage, *bounds) for bounds in path)
    reached = (index for index, fraction in enumerate(fractions) if fraction >= options.target_fraction)
    low, high = path[next(reached, len(path) - 1)]
    return {
        BOUNDS_TABLE: {
            "low": low,
            "high": high,
            "fraction": positive_fraction(options, ratio, inputs.advantage, low, high),
        }
    }


def positive_fraction(options: BalancedClipOptions, ratio: Floats, advantage: Floats, low: float, high: float) -> float:
    """Return positive / (positive + negative) of ratio |A| over tokens with a gradient.

    Returns 1 if no token has a gradient.
    """
    weighted = ratio * np.abs(advantage)
    objective = clip_objective(ratio, advantage, 1 - low, high - 1, options.dual_clip)
    live = ~(objective.clipped_low | objective.clipped_high)
    good, bad = (float(weighted[live & side].sum()) for side in (advantage > 0, advantage < 0))
    return good / (good + bad) if good + bad > 0 else 1.0


def _bound_ranges(options: BalancedClipOptions) -> tuple[tuple[float, float], tuple[float, float]]:
    return (options.low, options.max_low), (options.high, options.max_high)


def _bound_path(start: float, end: float, step: float) -> list[float]:
    count = int(np.ceil(round((end - start) / step, 9)))
    return [round(min(start + nth * step, end), 12) for nth in range(count + 1)]


PLUGIN = Plugin(
    "balanced-clip",
    PluginKind.SURROGATE,
    "BAPO, arXiv 2510.18927, with the fraction positive / (positive + negative) of tokens with a gradient",
    balanced_clip,
    BalancedClipOptions,
    needs=frozenset({"old_logprobs", "start_logprobs"}),
    step_statistics=update_bounds,
    state_tables=frozenset({BOUNDS_TABLE}),
    traits=frozenset({PluginTrait.CLIP_BOUNDS}),
)
