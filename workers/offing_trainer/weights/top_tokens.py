"""Only the tokens that matter most are trained, and more of them as the training goes on: D3S's lower level."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats
from offing_trainer.seam import Options, Plugin, Seam, WeightGiven


class TopTokens(Options):
    share: float = Field(default=0.2, gt=0, le=1)
    """Of the step's tokens, when the training begins."""
    final_share: float = Field(default=1.0, gt=0, le=1)
    """When it ends; in between it changes in a straight line."""


def top_tokens(options: TopTokens, given: WeightGiven) -> Floats:
    """Those with the largest |A| H, H the entropy as sampled; the others weigh 0, and these for them too.

    Tokens that are as large as the least that is kept are kept too, so that their order decides nothing.
    """
    share = (1 - given.progress) * options.share + given.progress * options.final_share
    score = np.abs(given.advantage) * given.batch.entropy
    if not len(score) or share >= 1:
        return np.ones(len(score))
    least = np.sort(score)[-max(1, int(np.ceil(share * len(score))))]
    kept = score >= least
    return kept * (len(score) / kept.sum())


PLUGIN = Plugin(
    "top-tokens",
    Seam.WEIGHT,
    "D3S: the top K% of tokens by |A| H, K relaxed with progress",
    top_tokens,
    TopTokens,
    needs=frozenset({"entropy"}),
)
