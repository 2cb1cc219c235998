"""Pays each turn for how much it raised the model's own probability of the reference answer: IGPO."""

import numpy as np

from offing_trainer.batch import Floats
from offing_trainer.seam import Claim, Options, Plugin, RewardGiven, Rewards, Seam, State, no_state
from offing_trainer.turns import closes, opens


def info_gain(options: Options, given: RewardGiven) -> tuple[Rewards, State]:
    """r_t = p_t - p_{t-1} before the last turn, whose reward is the outcome; p the reference's mean-token probability.

    Beside what turns were paid before. Turns of a task without a reference gain nothing.
    """
    batch, rewards = given.batch, given.rewards
    last, gained = closes(batch.turn_rollout), gains(given)
    outcome = rewards.rollout[batch.turn_rollout]
    return Rewards(rewards.rollout, rewards.turn + np.where(last, outcome, gained), by_turn=True), no_state()


def gains(given: RewardGiven) -> Floats:
    """(T,) p_t - p_{t-1}; 0 where either is not known."""
    batch = given.batch
    chance = np.exp(given.columns["reference_logp"])
    start = np.exp(given.columns["reference_start"])[batch.turn_rollout]
    before = np.where(opens(batch.turn_rollout), start, np.roll(chance, 1))
    return np.nan_to_num(chance - before, nan=0.0)


PLUGIN = Plugin(
    "info-gain",
    Seam.REWARD,
    "IGPO, arXiv 2510.14967: r_t = p_t - p_{t-1}, r_T the outcome",
    info_gain,
    needs=frozenset({"reference_logp", "reference_start"}),
    claims=frozenset({Claim.TURN_REWARD}),
)
