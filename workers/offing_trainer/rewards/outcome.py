"""The settled reward of a rollout, as it is or as success and failure."""

from dataclasses import replace

import numpy as np

from offing_trainer.seam import Options, Plugin, RewardGiven, Rewards, Seam, State, no_state


class Outcome(Options):
    threshold: float | None = None
    """From here on it is 1, below 0. None: as it is."""


def outcome(options: Outcome, given: RewardGiven) -> tuple[Rewards, State]:
    settled = given.batch.reward
    least = options.threshold
    paid = settled if least is None else np.where(np.isnan(settled), np.nan, settled >= least)
    return replace(given.rewards, rollout=paid.astype(np.float64)), no_state()


PLUGIN = Plugin("outcome", Seam.REWARD, "AgentFlow, arXiv 2510.05592: one outcome reward a rollout", outcome, Outcome)
