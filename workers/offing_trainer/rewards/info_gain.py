"""IGPO: rewards each turn for raising the model's probability of the reference answer."""

import numpy as np

from offing_trainer.batch import Floats
from offing_trainer.plugin import (
    Plugin,
    PluginKind,
    PluginOptions,
    PluginState,
    PluginTrait,
    RewardInput,
    Rewards,
    empty_state,
)
from offing_trainer.turn_math import mark_first, mark_last


def info_gain(options: PluginOptions, inputs: RewardInput) -> tuple[Rewards, PluginState]:
    """Compute r_t = p_t - p_{t-1}; the last turn gets the outcome reward.

    p is the reference answer's mean token probability. Existing turn rewards are added. Turns of a task
    without a reference get 0.
    """
    batch, rewards = inputs.batch, inputs.rewards
    last, gained = mark_last(batch.turn_rollout), compute_gains(inputs)
    outcome = rewards.rollout[batch.turn_rollout]
    return Rewards(rewards.rollout, rewards.turn + np.where(last, outcome, gained), by_turn=True), empty_state()


def compute_gains(inputs: RewardInput) -> Floats:
    """Return p_t - p_{t-1}, (T,). 0 where either is unknown."""
    batch = inputs.batch
    probability = np.exp(inputs.columns["answer_logprob"])
    start = np.exp(inputs.columns["initial_answer_logprob"])[batch.turn_rollout]
    before = np.where(mark_first(batch.turn_rollout), start, np.roll(probability, 1))
    return np.nan_to_num(probability - before, nan=0.0)


PLUGIN = Plugin(
    "info-gain",
    PluginKind.REWARD,
    "IGPO, arXiv 2510.14967: r_t = p_t - p_{t-1}, r_T the outcome",
    info_gain,
    needs=frozenset({"answer_logprob", "initial_answer_logprob"}),
    traits=frozenset({PluginTrait.TURN_REWARD}),
)
