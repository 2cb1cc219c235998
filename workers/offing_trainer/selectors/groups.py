"""Selectors of whole groups and rollouts, before anything is computed from them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from offing_trainer.batch import RolloutGroup, TrainingRollout
from offing_trainer.plugin import GroupSelectorInput, Plugin, PluginKind, PluginOptions, PluginState, empty_state


class InformativeOptions(PluginOptions):
    min_reward_difference: Annotated[float, Field(ge=0)] = 1e-9
    """Finalized rewards that differ by at most this are treated as equal."""


class SuccessesOptions(PluginOptions):
    min_reward: float = 1.0
    """Minimum finalized reward."""
    max_rollouts: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of rollouts per group, drawn at random if there are more. `None` means no limit."""


class RolloutSampleOptions(PluginOptions):
    max_rollouts: Annotated[int, Field(ge=1)] = 12
    """Maximum number of rollouts per group."""


def informative(options: InformativeOptions, inputs: GroupSelectorInput) -> tuple[Sequence[RolloutGroup], PluginState]:
    """Select groups whose rewards differ. The statistics of other groups carry no information."""
    return [
        group for group in inputs.groups if _has_different_rewards(group, options.min_reward_difference)
    ], empty_state()


def successes(options: SuccessesOptions, inputs: GroupSelectorInput) -> tuple[Sequence[RolloutGroup], PluginState]:
    """Select successful rollouts, for SFT."""
    selected = [replace(group, rollouts=_select_successes(options, group, inputs)) for group in inputs.groups]
    return [group for group in selected if group.rollouts], empty_state()


def rollout_sample(
    options: RolloutSampleOptions, inputs: GroupSelectorInput
) -> tuple[Sequence[RolloutGroup], PluginState]:
    """Draw rollouts of each group. Statistics are then over the drawn rollouts."""
    return [
        replace(group, rollouts=_sample_rollouts(group.rollouts, options.max_rollouts, inputs))
        for group in inputs.groups
    ], empty_state()


def _has_different_rewards(group: RolloutGroup, min_difference: float) -> bool:
    group_rewards = [s.metadata.reward for s in group.rollouts if s.metadata.reward is not None]
    return bool(group_rewards) and max(group_rewards) - min(group_rewards) > min_difference


def _select_successes(
    options: SuccessesOptions, group: RolloutGroup, inputs: GroupSelectorInput
) -> tuple[TrainingRollout, ...]:
    successful = [
        s for s in group.rollouts if s.metadata.reward is not None and s.metadata.reward >= options.min_reward
    ]
    return (
        tuple(successful)
        if options.max_rollouts is None
        else _sample_rollouts(successful, options.max_rollouts, inputs)
    )


def _sample_rollouts(
    rollouts: Sequence[TrainingRollout], max_rollouts: int, inputs: GroupSelectorInput
) -> tuple[TrainingRollout, ...]:
    if len(rollouts) <= max_rollouts:
        return tuple(rollouts)
    drawn: list[int] = inputs.rng.choice(len(rollouts), max_rollouts, replace=False).tolist()
    return tuple(rollouts[n] for n in sorted(drawn))


INFORMATIVE = Plugin(
    "informative",
    PluginKind.SELECTOR,
    "DAPO, arXiv 2503.14476: dynamic sampling",
    informative,
    InformativeOptions,
    stage="groups",
    min_group_size=2,
)
SUCCESSES = Plugin(
    "successes",
    PluginKind.SELECTOR,
    "rejection sampling fine-tuning",
    successes,
    SuccessesOptions,
    stage="groups",
    uses_rng=True,
)
ROLLOUT_SAMPLE = Plugin(
    "rollout-sample",
    PluginKind.SELECTOR,
    "MemAct (DCPO), released code: statistics after sampling",
    rollout_sample,
    RolloutSampleOptions,
    stage="groups",
    uses_rng=True,
)
