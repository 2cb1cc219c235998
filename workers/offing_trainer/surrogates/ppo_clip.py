"""PPO's clipped objective, with one ratio per token as in GRPO, or one per sequence as in GSPO."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from offing_trainer.grouped_statistics import sum_by_index
from offing_trainer.plugin import LossInput, LossTerm, Plugin, PluginKind, PluginOptions
from offing_trainer.surrogates.ratios import (
    MAX_LOG_RATIO_NATS,
    ClippedObjective,
    clip_objective,
    compute_sequence_ratios,
    compute_token_ratios,
)

ClipBound = Annotated[float, Field(gt=0)]


class PpoClipOptions(PluginOptions):
    low: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Ratios are clipped below 1 - low."""
    high: ClipBound = 0.2
    """Ratios are clipped above 1 + high."""
    dual_clip: Annotated[float, Field(gt=1)] | None = None
    """Maximum loss of a token with a negative advantage, in multiples of |A|. `None` means no limit."""


class GspoOptions(PluginOptions):
    low: Annotated[float, Field(gt=0, le=1)] = 3e-4
    high: ClipBound = 4e-4
    unit: Literal["rows", "turns"] = "turns"
    """The unit that is one sequence with one ratio."""
    max_log_ratio: Annotated[float, Field(gt=0, le=MAX_LOG_RATIO_NATS)] = MAX_LOG_RATIO_NATS
    """Limit of a sequence's mean log-ratio in nats. verl, which released it, uses 10."""


def ppo_clip(options: PpoClipOptions, inputs: LossInput) -> LossTerm:
    ratio = compute_token_ratios(inputs)
    objective = clip_objective(ratio.value, inputs.advantage, options.low, options.high, options.dual_clip)
    return LossTerm(
        float(inputs.weight @ objective.value),
        inputs.weight * objective.gradient * ratio.log_gradient,
        metrics=_clip_metrics(objective, inputs),
    )


def gspo(options: GspoOptions, inputs: LossInput) -> LossTerm:
    """Compute GSPO's loss. The ratio is exp of the sequence's mean log-ratio.

    Every token has its own advantage and weight.
    """
    _, of = np.unique(
        inputs.batch.token_row if options.unit == "rows" else inputs.batch.token_turn, return_inverse=True
    )
    ratio, inverse_length = compute_sequence_ratios(inputs, of, options.max_log_ratio)
    objective = clip_objective(ratio.value[of], inputs.advantage, options.low, options.high)
    gradient = (
        sum_by_index(inputs.weight * objective.gradient, of, len(inverse_length)) * ratio.log_gradient * inverse_length
    )
    return LossTerm(float(inputs.weight @ objective.value), gradient[of], metrics=_clip_metrics(objective, inputs))


def _clip_metrics(objective: ClippedObjective, inputs: LossInput) -> dict[str, float]:
    live = inputs.weight > 0
    return {
        "clip_low": float((objective.clipped_low & live).sum()),
        "clip_high": float((objective.clipped_high & live).sum()),
    }


NEEDS = frozenset({"old_logprobs"})

PPO_CLIP = Plugin(
    "ppo-clip",
    PluginKind.SURROGATE,
    "PPO, arXiv 1707.06347; dual clip: arXiv 1912.09729",
    ppo_clip,
    PpoClipOptions,
    needs=NEEDS,
)
GSPO = Plugin(
    "gspo", PluginKind.SURROGATE, "GSPO, arXiv 2507.18071: s = exp(mean log-ratio)", gspo, GspoOptions, needs=NEEDS
)
