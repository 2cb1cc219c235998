"""Which pipelines another trainer can train, and the loss that it needs for them.

Everything up to the weight of a token is computed here, so any estimator, selector and averaging
rule can be exported. The other trainer only computes a loss per token. This module names the losses
that all bridges support.
"""

from collections.abc import Mapping
from typing import Any

from offing.core.errors import InvalidInput
from offing_trainer.bridges.step_file import LossSpec
from offing_trainer.config import TrainConfig
from offing_trainer.pipeline import ConfiguredPlugin, Pipeline, compute_required_columns
from offing_trainer.plugin import PluginKind

EXPORTABLE_SURROGATES = ("ppo-clip", "reinforce", "cross-entropy")

EXTERNAL_COLUMNS = frozenset({"ref_logprobs", "old_logprobs"})
"""Columns that the other trainer computes, because it has the weights for them."""

EXPORTED_LEARNER_FIELDS = ("learning_rate", "betas", "epsilon", "weight_decay", "max_grad_norm", "warmup_steps")


def build_loss_spec(config: TrainConfig, pipeline: Pipeline) -> LossSpec:
    """Build the loss of a pipeline. Raises InvalidInput for what only Offing's learner supports."""
    _check_exportable(config, pipeline)
    surrogate = pipeline.get_plugin(PluginKind.SURROGATE)
    kl, entropy = _find_regularizers(config, pipeline)
    options = surrogate.options
    clipped = surrogate.plugin.name == "ppo-clip"
    return LossSpec(
        surrogate=surrogate.plugin.name,  # type: ignore[arg-type]  # _check_exportable has checked it
        ratio_to="none" if not clipped else "behavior" if config.learner.mode == "bypass" else "start",
        clip_low=getattr(options, "low", 0.0),
        clip_high=getattr(options, "high", 0.0),
        dual_clip=getattr(options, "dual_clip", None),
        kl_estimator=None if kl is None else kl.options.estimator,  # type: ignore[attr-defined]
        kl_coefficient=0.0 if kl is None else kl.coefficient,
        kl_max_value=None if kl is None or kl.options.estimator != "k3" else kl.options.max_value,  # type: ignore[attr-defined]
        entropy_coefficient=0.0 if entropy is None else entropy.coefficient,
    )


def export_learner_settings(config: TrainConfig) -> Mapping[str, Any]:
    """Return the learner settings that the other trainer can use."""
    return config.learner.model_dump(include=set(EXPORTED_LEARNER_FIELDS))


def _check_exportable(config: TrainConfig, pipeline: Pipeline) -> None:
    name = pipeline.get_plugin(PluginKind.SURROGATE).plugin.name
    if name not in EXPORTABLE_SURROGATES:
        raise InvalidInput(
            "pipeline.surrogate", f"{name} cannot be exported", f"Use one of {', '.join(EXPORTABLE_SURROGATES)}."
        )
    needed = compute_required_columns(pipeline, config.learner.mode)
    if here := sorted(needed.before_selection | (needed.after_selection - EXTERNAL_COLUMNS)):
        problem = f"it needs {here[0]}, which must be computed with weights before the step is exported"
        raise InvalidInput("pipeline", problem, "Train with `offing train`, or use another plug-in.")
    if any(needed.after_selection & link.needs for link in pipeline.filter_plugins(PluginKind.TOKEN_WEIGHT)):
        problem = "a token weight needs logprobs under the weights at the start of the step"
        raise InvalidInput("pipeline.token_weights", problem, "Remove it, or train with `offing train`.")
    if "ref_logprobs" in needed.after_selection and config.reference_policy not in ("", config.policy):
        raise InvalidInput("reference_policy", "other trainers use the initial policy as reference", "Remove it.")


def _find_regularizers(
    config: TrainConfig, pipeline: Pipeline
) -> tuple[ConfiguredPlugin | None, ConfiguredPlugin | None]:
    regularizers: dict[str, ConfiguredPlugin] = {}
    for link in pipeline.filter_plugins(PluginKind.REGULARIZER):
        name = link.plugin.name
        if name not in ("kl-ref", "entropy") or name in regularizers:
            problem = f"{name} occurs twice" if name in regularizers else f"{name} cannot be exported"
            raise InvalidInput("pipeline.regularizers", problem, "Use kl-ref and entropy, each once, or none.")
        regularizers[name] = link
    return regularizers.get("kl-ref"), regularizers.get("entropy")
