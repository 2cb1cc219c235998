"""A bonus for entropy, with a fixed coefficient."""

import numpy as np

from offing_trainer.seam import Loss, LossGiven, Options, Plugin, Seam


def entropy(options: Options, given: LossGiven) -> Loss:
    """-H: a larger coefficient holds the policy wider."""
    return Loss(-float(given.weight @ given.entropy), np.zeros(len(given.logp)), -given.weight)


PLUGIN = Plugin("entropy", Seam.REGULARISE, "A3C, arXiv 1602.01783: entropy bonus", entropy)
