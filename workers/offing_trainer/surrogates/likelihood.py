"""Logprob times advantage: the policy gradient, and SFT."""

import numpy as np

from offing_trainer.plugin import LossInput, LossTerm, Plugin, PluginKind, PluginOptions


def reinforce(options: PluginOptions, inputs: LossInput) -> LossTerm:
    """Compute -A log p. On the sampling weights, its gradient is the policy gradient."""
    return _weighted_logprobs(inputs, inputs.weight * inputs.advantage)


def cross_entropy(options: PluginOptions, inputs: LossInput) -> LossTerm:
    """Compute -log p, weighted by the advantage. Negative advantages count as 0."""
    return _weighted_logprobs(inputs, inputs.weight * np.maximum(inputs.advantage, 0))


def _weighted_logprobs(inputs: LossInput, token_weight: np.ndarray[tuple[int], np.dtype[np.float64]]) -> LossTerm:
    return LossTerm(-float(token_weight @ inputs.logprobs), -token_weight)


REINFORCE = Plugin("reinforce", PluginKind.SURROGATE, "Williams 1992: -A log p", reinforce)
CROSS_ENTROPY = Plugin("cross-entropy", PluginKind.SURROGATE, "maximum likelihood: -log p", cross_entropy)
