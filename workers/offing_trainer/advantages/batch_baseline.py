"""REINFORCE with the mean of the whole step as baseline; and the same credit for every token, for imitation."""

from typing import Annotated

import numpy as np
from pydantic import Field

from offing_trainer.advantages.group_z import Over, entries_of
from offing_trainer.seam import Advantage, AdvantageGiven, Options, Plugin, Seam, State, no_state


class BatchBaseline(Options):
    over: Over = "rollouts"
    """What is one entry of the mean, and gets one advantage."""
    standardise: bool = False
    """Divide by the step's deviation too."""
    epsilon: Annotated[float, Field(ge=0)] = 1e-6


class Constant(Options):
    value: float = 1.0


def batch_baseline(options: BatchBaseline, given: AdvantageGiven) -> tuple[Advantage, State]:
    entries = entries_of(given.batch, given.rewards, options.over)
    mean = entries.score.mean() if len(entries.score) else 0.0
    centred = entries.above(np.full(len(entries.score), mean))
    if options.standardise and len(entries.score) > 1:
        centred = centred / (entries.score.std(ddof=1) + options.epsilon)
    return entries.told(given.batch, centred), no_state()


def constant(options: Constant, given: AdvantageGiven) -> tuple[Advantage, State]:
    return Advantage(np.full(given.batch.tokens, options.value)), no_state()


PLUGINS = (
    Plugin(
        "batch-baseline",
        Seam.ADVANTAGE,
        "Williams 1992, REINFORCE with a baseline: A = R - mean R of the step",
        batch_baseline,
        BatchBaseline,
    ),
    Plugin(
        "constant", Seam.ADVANTAGE, "maximum likelihood: every token counts alike", constant, Constant, unscored=True
    ),
)
