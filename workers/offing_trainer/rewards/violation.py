"""DCPO's reward for breaking a limit or a rule, which replaces the rollout's reward."""

from dataclasses import replace
from typing import Literal

import numpy as np

from offing_trainer.batch import OUTCOME_CODES
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, PluginState, RewardInput, Rewards, empty_state


class ViolationOptions(PluginOptions):
    reward: float = -0.1
    outcomes: tuple[Literal["answered", "no_answer", "truncated", "violated"], ...] = ("truncated", "violated")
    """Outcomes that count as a violation."""


def violation(options: ViolationOptions, inputs: RewardInput) -> tuple[Rewards, PluginState]:
    broken = np.isin(inputs.batch.outcome, [OUTCOME_CODES[name] for name in options.outcomes])
    return replace(inputs.rewards, rollout=np.where(broken, options.reward, inputs.rewards.rollout)), empty_state()


PLUGIN = Plugin(
    "violation",
    PluginKind.REWARD,
    "MemAct, arXiv 2510.12635: +1 success, -0.1 violation, else 0",
    violation,
    ViolationOptions,
)
