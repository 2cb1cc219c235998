"""The finalized reward of a rollout, unchanged or as success and failure."""

from dataclasses import replace

import numpy as np

from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, PluginState, RewardInput, Rewards, empty_state


class OutcomeOptions(PluginOptions):
    threshold: float | None = None
    """Rewards from this value on become 1, others 0. `None` leaves them unchanged."""


def outcome(options: OutcomeOptions, inputs: RewardInput) -> tuple[Rewards, PluginState]:
    reward = inputs.batch.reward
    threshold = options.threshold
    shaped = reward if threshold is None else np.where(np.isnan(reward), np.nan, reward >= threshold)
    return replace(inputs.rewards, rollout=shaped.astype(np.float64)), empty_state()


PLUGIN = Plugin(
    "outcome", PluginKind.REWARD, "AgentFlow, arXiv 2510.05592: one outcome reward per rollout", outcome, OutcomeOptions
)
