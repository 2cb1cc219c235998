"""How likely what was sampled is under the anchor, as a bounded factor: the correction for an engine or version behind.

The ratio is anchor / behaviour, so it is for the decoupled form, where the clip's own ratio is trained / anchor. In
logarithms until the last, so that no product over many tokens overflows.
"""

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from offing_trainer.batch import Batch, Floats, Places
from offing_trainer.seam import Options, Plugin, Seam, WeightGiven
from offing_trainer.statistics import counts, reciprocal, sums
from offing_trainer.surrogates.ratios import ratios


class TruncatedImportance(Options):
    over: Literal["tokens", "turns", "rows"] = "tokens"
    """What has one ratio: each token, or the sequence of a turn's or a row's."""
    mean: bool = False
    """Of a sequence the geometric mean of its tokens' ratios instead of their product."""
    how: Literal["truncate", "mask"] = "truncate"
    """truncate: a ratio above `high` counts as it. mask: what is outside the bounds is not trained."""
    low: float = Field(default=0.0, ge=0)
    """Only masks."""
    high: float = Field(default=2.0, gt=0)

    @model_validator(mode="after")
    def _in_order(self) -> "TruncatedImportance":
        if self.low >= self.high:
            raise ValueError("low must be below high")
        return self


def truncated_importance(options: TruncatedImportance, given: WeightGiven) -> Floats:
    log = given.columns["logp_old"] - given.batch.behaviour
    if options.over != "tokens":
        log = _of_sequences(log, _sequence(given.batch, options.over), mean=options.mean)
    ratio = ratios(log).value
    if options.how == "truncate":
        return np.minimum(ratio, options.high)
    return np.where((ratio >= options.low) & (ratio <= options.high), ratio, 0.0)


def _sequence(batch: Batch, over: str) -> Places:
    """(P,) a turn in a row that is trained twice is two."""
    if over == "rows":
        return batch.token_row
    _, of = np.unique(batch.token_turn + batch.turns * batch.token_row, return_inverse=True)
    return of


def _of_sequences(log: Floats, of: Places, *, mean: bool) -> Floats:
    sequences = int(of.max(initial=-1)) + 1
    total = sums(log, of, sequences)
    return (total * reciprocal(counts(of, sequences)) if mean else total)[of]


PLUGIN = Plugin(
    "truncated-importance",
    Seam.WEIGHT,
    "decoupled PPO, AReaL, arXiv 2505.24298; truncated importance sampling: min(p_anchor / p_behaviour, high)",
    truncated_importance,
    TruncatedImportance,
    needs=frozenset({"logp_old", "behaviour"}),
)
