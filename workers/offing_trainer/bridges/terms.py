"""Which chains can be trained elsewhere, and what of them goes along.

Whatever a chain says up to the weight of a token is computed here, so that any estimator, selection and averaging goes.
What is left for the other trainer is a loss of one token; the losses that all our bridges have are named here.
"""

from collections.abc import Mapping
from typing import Any

from offing.core.errors import InvalidInput
from offing_trainer.bridges.handed import Terms
from offing_trainer.chain import Chain, Link, needed_columns
from offing_trainer.config import TrainConfig
from offing_trainer.seam import Seam

SURROGATES = ("ppo-clip", "reinforce", "cross-entropy")

THEIRS = frozenset({"logp_ref", "logp_old"})
"""Columns that the other trainer computes: it opens the weights that they are of."""

HOW = ("learning_rate", "betas", "epsilon", "weight_decay", "gradient_clip", "warmup")


def terms_of(config: TrainConfig, chain: Chain) -> Terms:
    """Raises InvalidInput that names what only our own learner can do."""
    _refuse_foreign(config, chain)
    surrogate = chain.only(Seam.SURROGATE)
    kl, entropy = _regularised(config, chain)
    options = surrogate.options
    clipped = surrogate.plugin.name == "ppo-clip"
    return Terms(
        surrogate=surrogate.plugin.name,  # type: ignore[arg-type]  # _refuse_foreign has looked
        anchor="none" if not clipped else "behaviour" if config.learner.mode == "bypass" else "start",
        low=getattr(options, "low", 0.0),
        high=getattr(options, "high", 0.0),
        dual=getattr(options, "dual", None),
        kl=None if kl is None else kl.options.estimator,  # type: ignore[attr-defined]
        kl_coefficient=0.0 if kl is None else kl.coefficient,
        entropy=0.0 if entropy is None else entropy.coefficient,
    )


def learner_of(config: TrainConfig) -> Mapping[str, Any]:
    """What the other trainer may take over of how weights are moved."""
    return config.learner.model_dump(include=set(HOW))


def _refuse_foreign(config: TrainConfig, chain: Chain) -> None:
    name = chain.only(Seam.SURROGATE).plugin.name
    if name not in SURROGATES:
        raise InvalidInput("chain.surrogate", f"{name} is not handed over", f"Use one of {', '.join(SURROGATES)}.")
    needed = needed_columns(chain, config.learner.mode)
    if here := sorted(needed.early | (needed.late - THEIRS)):
        problem = f"it needs {here[0]}, which takes weights before a step is known"
        raise InvalidInput("chain", problem, "Train it here with `offing train`, or choose another plug-in.")
    if any(needed.late & link.needs for link in chain.at(Seam.WEIGHT)):
        problem = "a weight needs log-probabilities of the weights that the step begins with"
        raise InvalidInput("chain.weight", problem, "Leave it out, or train here with `offing train`.")
    if "logp_ref" in needed.late and config.reference not in ("", config.policy):
        raise InvalidInput("reference", "another trainer holds on to the policy it begins with", "Leave it out.")


def _regularised(config: TrainConfig, chain: Chain) -> tuple[Link | None, Link | None]:
    found: dict[str, Link] = {}
    for link in chain.at(Seam.REGULARISE):
        name = link.plugin.name
        if name not in ("kl-ref", "entropy") or name in found:
            problem = f"{name} is there twice" if name in found else f"{name} is not handed over"
            raise InvalidInput("chain.regularise", problem, "Use kl-ref and entropy, each once, or none.")
        found[name] = link
    return found.get("kl-ref"), found.get("entropy")
