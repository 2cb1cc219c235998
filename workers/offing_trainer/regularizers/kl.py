"""KL divergence from a reference policy, per token, with three estimators."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats
from offing_trainer.plugin import LossInput, LossTerm, Plugin, PluginKind, PluginOptions
from offing_trainer.surrogates.ratios import compute_ratios


class KlRefOptions(PluginOptions):
    estimator: Literal["k1", "k2", "k3"] = "k3"
    """Estimator of the divergence, from d = log p_ref - log p at the sampled token.
    The estimator k1 is -d, unbiased, but its own gradient has mean 0; k2 is d^2 / 2; k3 is exp(d) - d -
    1, never negative.
    """
    max_value: Annotated[float, Field(gt=0)] | None = 10.0
    """Limit of a token's k3, as in verl. A token beyond it has no gradient, so that a single one whose probability
    fell by many nats does not decide the step: at 12 nats, its slope is 1.6e5. `None` means no limit.
    """


def kl_ref(options: KlRefOptions, inputs: LossInput) -> LossTerm:
    value, slope = estimate_kl(options.estimator, inputs.columns["ref_logprobs"] - inputs.logprobs)
    if options.estimator == "k3" and options.max_value is not None:
        slope = np.where(value > options.max_value, 0.0, slope)
        value = np.minimum(value, options.max_value)
    return LossTerm(float(inputs.weight @ value), inputs.weight * slope)


def estimate_kl(estimator: str, log_ratio: Floats) -> tuple[Floats, Floats]:
    """Estimate the divergence per token and its gradient by log p.

    log_ratio = log q - log p, with tokens sampled from p.
    """
    if estimator == "k1":
        return -log_ratio, np.ones(len(log_ratio))
    if estimator == "k2":
        return log_ratio**2 / 2, -log_ratio
    ratio = compute_ratios(log_ratio)
    return ratio.value - log_ratio - 1, 1 - ratio.log_gradient


PLUGIN = Plugin(
    "kl-ref",
    PluginKind.REGULARIZER,
    "GRPO, arXiv 2402.03300; estimators: Schulman 2020, Approximating KL divergence",
    kl_ref,
    KlRefOptions,
    needs=frozenset({"ref_logprobs"}),
)
