"""Log-probability times credit: the plain policy gradient, and imitation."""

import numpy as np

from offing_trainer.seam import Loss, LossGiven, Options, Plugin, Seam


def reinforce(options: Options, given: LossGiven) -> Loss:
    """-A log p: on the weights that sampled, its derivative is the policy gradient."""
    return _loss(given, given.weight * given.advantage)


def cross_entropy(options: Options, given: LossGiven) -> Loss:
    """-log p, as often as the advantage says; what has a negative one is not imitated."""
    return _loss(given, given.weight * np.maximum(given.advantage, 0))


def _loss(given: LossGiven, credit: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Loss:
    return Loss(-float(credit @ given.logp), -credit)


PLUGINS = (
    Plugin("reinforce", Seam.SURROGATE, "Williams 1992: -A log p", reinforce),
    Plugin("cross-entropy", Seam.SURROGATE, "maximum likelihood: -log p", cross_entropy),
)
