"""Keeps entropy near what it used to be at the same turn: EPO's smoothing, as a hinge, so that it has a gradient.

The table holds, by number of the turn, the mean entropies of optimiser steps, and the band of the present one, which is
made of those before it.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from offing_trainer.batch import Batch, Floats, Places
from offing_trainer.seam import Claim, Loss, LossGiven, Options, Plugin, Seam, State, SurveyGiven
from offing_trainer.statistics import counts, means, reciprocal, sums
from offing_trainer.turns import turn_means

HISTORY = "entropy-history"


class EntropyBand(Options):
    low: float = Field(default=0.8, ge=0)
    """Times the mean of earlier steps."""
    high: float = Field(default=1.2, ge=0)
    over: Literal["tokens", "turns"] = "tokens"
    """Whose entropy must lie in the band: each token's, or the mean of a turn's."""
    fade: float = Field(default=0.0, ge=0, le=1)
    """Share of its strength that it has lost when the training ends."""

    @model_validator(mode="after")
    def _in_order(self) -> "EntropyBand":
        if self.low > self.high:
            raise ValueError("low must not be above high")
        return self


def entropy_band(options: EntropyBand, given: LossGiven) -> Loss:
    """sum of weight (max(0, H - high) + max(0, low - H)); a turn that no step had before costs nothing."""
    table = given.state[HISTORY]
    centre = _centres(given.batch, table["band"])
    known = ~np.isnan(centre)
    low, high = np.where(known, options.low * centre, -np.inf), np.where(known, options.high * centre, np.inf)
    of = _units(given.batch, options.over)
    units = int(of.max(initial=-1)) + 1
    level = means(given.entropy, of, units)[of]
    above, below = np.maximum(level - high, 0.0), np.maximum(low - level, 0.0)
    weight = table["strength"] * given.weight
    pulled = sums(weight * ((level > high) * 1.0 - (level < low)), of, units) * reciprocal(counts(of, units))
    outside = float(((above > 0) | (below > 0)).sum())
    return Loss(float(weight @ (above + below)), np.zeros(len(weight)), pulled[of], {"outside": outside})


def remember(options: EntropyBand, given: SurveyGiven) -> State:
    """The step's entropies as sampled become part of the history; its band is of what was there before."""
    before: Mapping[str, Any] = given.state.get(HISTORY, {}).get("turns", {})
    entropy = turn_means(given.batch, given.batch.entropy)
    there = ~np.isnan(entropy)
    numbers = given.batch.turn_number[there]
    seen = means(entropy[there], numbers, int(numbers.max(initial=-1)) + 1)
    after = dict(before)
    for number in np.unique(numbers).tolist():
        total, steps = before.get(str(number), (0.0, 0))
        after[str(number)] = [total + float(seen[number]), steps + 1]
    band = {number: total / steps for number, (total, steps) in before.items()}
    return {HISTORY: {"turns": after, "band": band, "strength": 1.0 - options.fade * given.progress}}


def _centres(batch: Batch, band: Mapping[str, float]) -> Floats:
    """(P,) NaN: not known."""
    by_turn = np.array([band.get(str(number), np.nan) for number in batch.turn_number.tolist()], np.float64)
    return by_turn[batch.token_turn] if batch.turns else np.empty(0)


def _units(batch: Batch, over: str) -> Places:
    """(P,) a turn in a row that is trained twice is two."""
    if over == "tokens":
        return np.arange(batch.tokens)
    _, of = np.unique(batch.token_turn + batch.turns * batch.token_row, return_inverse=True)
    return of


PLUGIN = Plugin(
    "entropy-band",
    Seam.REGULARISE,
    "EPO, arXiv 2509.22576, with a hinge for its constant penalty",
    entropy_band,
    EntropyBand,
    needs=frozenset({"entropy"}),
    survey=remember,
    state=frozenset({HISTORY}),
    claims=frozenset({Claim.ENTROPY_CONTROL}),
)
