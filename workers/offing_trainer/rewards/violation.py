"""Pays for breaking a limit or a rule what DCPO pays for it, whatever else the rollout was given."""

from dataclasses import replace
from typing import Literal

import numpy as np

from offing_trainer.batch import OUTCOMES
from offing_trainer.seam import Options, Plugin, RewardGiven, Rewards, Seam, State, no_state


class Violation(Options):
    value: float = -0.1
    outcomes: tuple[Literal["answered", "done", "truncated", "violated"], ...] = ("truncated", "violated")
    """Endings that are a violation."""


def violation(options: Violation, given: RewardGiven) -> tuple[Rewards, State]:
    broken = np.isin(given.batch.outcome, [OUTCOMES[name] for name in options.outcomes])
    return replace(given.rewards, rollout=np.where(broken, options.value, given.rewards.rollout)), no_state()


PLUGIN = Plugin(
    "violation", Seam.REWARD, "MemAct, arXiv 2510.12635: +1 success, -0.1 violation, else 0", violation, Violation
)
