"""PPO's clipped objective: a ratio a token, as in GRPO and Flow-GRPO; or one a sequence, as in GSPO."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from offing_trainer.seam import Loss, LossGiven, Options, Plugin, Seam
from offing_trainer.statistics import sums
from offing_trainer.surrogates.ratios import Clipped, clipped, sequence_ratios, token_ratios

Bound = Annotated[float, Field(gt=0)]


class PpoClip(Options):
    low: Annotated[float, Field(gt=0, le=1)] = 0.2
    """A ratio may fall to 1 - low."""
    high: Bound = 0.2
    """A ratio may rise to 1 + high."""
    dual: Annotated[float, Field(gt=1)] | None = None
    """Most that a token with a negative advantage can cost, in its advantage. None: any amount."""


class Gspo(Options):
    low: Annotated[float, Field(gt=0, le=1)] = 3e-4
    high: Bound = 4e-4
    over: Literal["rows", "turns"] = "turns"
    """What is one sequence with one ratio."""


def ppo_clip(options: PpoClip, given: LossGiven) -> Loss:
    ratio = token_ratios(given)
    found = clipped(ratio.value, given.advantage, options.low, options.high, options.dual)
    return Loss(
        float(given.weight @ found.value), given.weight * found.slope * ratio.moves, figures=_held(found, given)
    )


def gspo(options: Gspo, given: LossGiven) -> Loss:
    """The ratio is exp of the sequence's mean log-ratio; every token's advantage and weight are its own."""
    _, of = np.unique(given.batch.token_row if options.over == "rows" else given.batch.token_turn, return_inverse=True)
    ratio, share = sequence_ratios(given, of)
    found = clipped(ratio.value[of], given.advantage, options.low, options.high)
    pulled = sums(given.weight * found.slope, of, len(share)) * ratio.moves * share
    return Loss(float(given.weight @ found.value), pulled[of], figures=_held(found, given))


def _held(found: Clipped, given: LossGiven) -> dict[str, float]:
    live = given.weight > 0
    return {"clip_low": float((found.low & live).sum()), "clip_high": float((found.high & live).sum())}


NEEDS = frozenset({"logp_old"})

PLUGINS = (
    Plugin(
        "ppo-clip", Seam.SURROGATE, "PPO, arXiv 1707.06347; dual clip: arXiv 1912.09729", ppo_clip, PpoClip, needs=NEEDS
    ),
    Plugin("gspo", Seam.SURROGATE, "GSPO, arXiv 2507.18071: s = exp(mean log-ratio)", gspo, Gspo, needs=NEEDS),
)
