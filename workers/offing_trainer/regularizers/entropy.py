"""Entropy bonus with a fixed coefficient."""

import numpy as np

from offing_trainer.plugin import LossInput, LossTerm, Plugin, PluginKind, PluginOptions


def entropy(options: PluginOptions, inputs: LossInput) -> LossTerm:
    """Compute -H. A larger coefficient keeps the policy's entropy higher."""
    return LossTerm(-float(inputs.weight @ inputs.entropy), np.zeros(len(inputs.logprobs)), -inputs.weight)


PLUGIN = Plugin("entropy", PluginKind.REGULARIZER, "A3C, arXiv 1602.01783: entropy bonus", entropy)
