"""A clip whose bounds open until what went well carries its share of the step: BAPO, with the share corrected.

The share is of tokens that the clip leaves a gradient: what went well against all. So opening a bound never lowers it,
which counting clipped tokens does. Bounds are found for each optimiser step, from its rows under the weights that the
training step begins with: in decoupled form these are the anchor itself, every ratio is 1, and bounds say little.
"""

import numpy as np
from pydantic import Field, model_validator

from offing_trainer.batch import Floats
from offing_trainer.seam import Claim, Loss, LossGiven, Options, Plugin, Seam, State, SurveyGiven
from offing_trainer.surrogates.ratios import clipped, ratios, token_ratios

BOUNDS = "clip-bounds"


class BalancedClip(Options):
    target: float = Field(default=0.5, ge=0, le=1)
    """Share of the gradient that positive advantages should carry. 0: the bounds stay where they start."""
    low: float = Field(default=0.6, gt=0, lt=1)
    """Where the lower bound of the ratio starts."""
    low_most: float = Field(default=0.9, gt=0, le=1)
    high: float = Field(default=1.2, ge=1)
    high_most: float = Field(default=3.0, ge=1)
    step: float = Field(default=0.05, gt=0)
    """Both bounds are moved by it."""
    dual: float | None = Field(default=3.0, gt=1)
    """Most that a token with a negative advantage can cost, in its advantage. None: any amount."""

    @model_validator(mode="after")
    def _in_order(self) -> "BalancedClip":
        if self.low > self.low_most or self.high > self.high_most:
            raise ValueError("bounds must start below their most")
        return self


def balanced_clip(options: BalancedClip, given: LossGiven) -> Loss:
    bounds = given.state[BOUNDS]
    ratio = token_ratios(given)
    found = clipped(ratio.value, given.advantage, 1 - bounds["low"], bounds["high"] - 1, options.dual)
    live = given.weight > 0
    held = {"clip_low": float((found.low & live).sum()), "clip_high": float((found.high & live).sum())}
    return Loss(float(given.weight @ found.value), given.weight * found.slope * ratio.moves, figures=held)


def balanced(options: BalancedClip, given: SurveyGiven) -> State:
    """The narrowest bounds of the path with which the share is reached: the lower one moves first, then the upper."""
    ratio = ratios(given.columns["logp_start"] - given.columns["logp_old"]).value
    lows, highs = (_steps(*edge, options.step) for edge in _edges(options))
    path = [(low, options.high) for low in lows] + [(options.low_most, high) for high in highs[1:]]
    shares = (share(options, ratio, given.advantage, *bounds) for bounds in path)
    reached = (place for place, found in enumerate(shares) if found >= options.target)
    low, high = path[next(reached, len(path) - 1)]
    return {BOUNDS: {"low": low, "high": high, "share": share(options, ratio, given.advantage, low, high)}}


def share(options: BalancedClip, ratio: Floats, advantage: Floats, low: float, high: float) -> float:
    """Positive / (positive + negative), of ratio |A| over tokens with a gradient; without any: 1."""
    worth = ratio * np.abs(advantage)
    held = clipped(ratio, advantage, 1 - low, high - 1, options.dual)
    live = ~(held.low | held.high)
    good, bad = (float(worth[live & side].sum()) for side in (advantage > 0, advantage < 0))
    return good / (good + bad) if good + bad > 0 else 1.0


def _edges(options: BalancedClip) -> tuple[tuple[float, float], tuple[float, float]]:
    return (options.low, options.low_most), (options.high, options.high_most)


def _steps(start: float, most: float, step: float) -> list[float]:
    count = int(np.ceil(round((most - start) / step, 9)))
    return [round(min(start + nth * step, most), 12) for nth in range(count + 1)]


PLUGIN = Plugin(
    "balanced-clip",
    Seam.SURROGATE,
    "BAPO, arXiv 2510.18927, with the share positive / (positive + negative) of tokens with a gradient",
    balanced_clip,
    BalancedClip,
    needs=frozenset({"logp_old", "logp_start"}),
    survey=balanced,
    state=frozenset({BOUNDS}),
    claims=frozenset({Claim.CLIP_BOUNDS}),
)
