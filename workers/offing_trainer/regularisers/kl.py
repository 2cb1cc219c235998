"""Divergence from a reference policy, token by token, as three estimators of it."""

from typing import Literal

import numpy as np

from offing_trainer.batch import Floats
from offing_trainer.seam import Loss, LossGiven, Options, Plugin, Seam
from offing_trainer.surrogates.ratios import ratios


class KlRef(Options):
    estimator: Literal["k1", "k2", "k3"] = "k3"
    """Of d = log p_ref - log p at the sampled token. k1: -d, unbiased, but its own gradient has mean 0; k2: d^2 / 2;
    k3: exp(d) - d - 1, never negative."""


def kl_ref(options: KlRef, given: LossGiven) -> Loss:
    value, slope = estimated(options.estimator, given.columns["logp_ref"] - given.logp)
    return Loss(float(given.weight @ value), given.weight * slope)


def estimated(estimator: str, apart: Floats) -> tuple[Floats, Floats]:
    """A divergence a token and its derivative by log p, from `apart` = log q - log p with tokens sampled from p."""
    if estimator == "k1":
        return -apart, np.ones(len(apart))
    if estimator == "k2":
        return apart**2 / 2, -apart
    ratio = ratios(apart)
    return ratio.value - apart - 1, 1 - ratio.moves


PLUGIN = Plugin(
    "kl-ref",
    Seam.REGULARISE,
    "GRPO, arXiv 2402.03300; estimators: Schulman 2020, Approximating KL divergence",
    kl_ref,
    KlRef,
    needs=frozenset({"logp_ref"}),
)
