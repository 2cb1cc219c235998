"""D3S, lower level: trains only the most important tokens, more as training progresses."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, TokenWeightInput


class TopTokensOptions(PluginOptions):
    fraction: float = Field(default=0.2, gt=0, le=1)
    """Fraction of the step's tokens at the start of the training."""
    final_fraction: float = Field(default=1.0, gt=0, le=1)
    """Fraction at the end of the training. It changes linearly in between."""


def top_tokens(options: TopTokensOptions, inputs: TokenWeightInput) -> Floats:
    """Select the tokens with the largest |A| H, where H is the entropy at sampling.

    Other tokens get weight 0, and the selected ones are scaled up to compensate. Tokens that equal the
    smallest selected value are selected too, so that their order does not matter.
    """
    fraction = (1 - inputs.progress) * options.fraction + inputs.progress * options.final_fraction
    score = np.abs(inputs.advantage) * inputs.batch.entropy
    if not len(score) or fraction >= 1:
        return np.ones(len(score))
    min_score = np.sort(score)[-max(1, int(np.ceil(fraction * len(score))))]
    is_selected = score >= min_score
    return is_selected * (len(score) / is_selected.sum())


PLUGIN = Plugin(
    "top-tokens",
    PluginKind.TOKEN_WEIGHT,
    "D3S: the top K% of tokens by |A| H, K relaxed with progress",
    top_tokens,
    TopTokensOptions,
    needs=frozenset({"entropy"}),
)
