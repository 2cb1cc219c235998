"""REINFORCE with the mean score of the step as baseline, and a constant advantage for SFT."""

from typing import Annotated

import numpy as np
from pydantic import Field

from offing_trainer.advantages.group_z import StatisticsUnit, build_entries
from offing_trainer.plugin import Advantage, AdvantageInput, Plugin, PluginKind, PluginOptions, PluginState, empty_state


class BatchBaselineOptions(PluginOptions):
    unit: StatisticsUnit = "rollouts"
    """The unit that counts as one entry of the mean and gets one advantage."""
    standardize: bool = False
    """Also divide by the standard deviation over the step."""
    epsilon: Annotated[float, Field(ge=0)] = 1e-6


class ConstantOptions(PluginOptions):
    value: float = 1.0


def batch_baseline(options: BatchBaselineOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    entries = build_entries(inputs.batch, inputs.rewards, options.unit)
    mean = entries.score.mean() if len(entries.score) else 0.0
    centered = entries.subtract_mean(np.full(len(entries.score), mean))
    if options.standardize and len(entries.score) > 1:
        centered = centered / (entries.score.std(ddof=1) + options.epsilon)
    return entries.to_advantage(inputs.batch, centered), empty_state()


def constant(options: ConstantOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    return Advantage(np.full(inputs.batch.num_tokens, options.value)), empty_state()


BATCH_BASELINE = Plugin(
    "batch-baseline",
    PluginKind.ADVANTAGE,
    "Williams 1992, REINFORCE with a baseline: A = R - mean R of the step",
    batch_baseline,
    BatchBaselineOptions,
)
CONSTANT = Plugin(
    "constant",
    PluginKind.ADVANTAGE,
    "maximum likelihood: every token has the same weight",
    constant,
    ConstantOptions,
    allows_unscored=True,
)
