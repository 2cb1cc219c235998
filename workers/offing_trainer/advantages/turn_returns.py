"""Each turn is credited with what it and later turns were paid, compared with all turns of its group: IGPO's."""

from typing import Literal

import numpy as np
from pydantic import Field

from offing_trainer.seam import Advantage, AdvantageGiven, Options, Plugin, Seam, State, no_state
from offing_trainer.statistics import deviations, means
from offing_trainer.turns import backward, taught


class TurnReturns(Options):
    gamma: float = Field(default=1.0, ge=0, le=1)
    """A turn."""
    ddof: Literal[0, 1] = 1
    epsilon: float = Field(default=1e-6, gt=0)
    """Added to the deviation."""


def turn_returns(options: TurnReturns, given: AdvantageGiven) -> tuple[Advantage, State]:
    """A_t = sum over later turns k of gamma^(k - t) r~_k; r~ the rewards of the group's turns, normalised together.

    Turns are pooled by group, never compared at the same place, because rollouts end at different ones.
    """
    batch = given.batch
    turns, paid = taught(batch, given.rewards)
    of = batch.rollout_group[batch.turn_rollout[turns]]
    centred = paid - means(paid, of, batch.groups)[of]
    normal = centred / (deviations(paid, of, batch.groups, options.ddof)[of] + options.epsilon)
    credit = np.zeros(batch.turns)
    credit[turns] = backward(normal, np.full(len(turns), options.gamma), batch.turn_rollout[turns])
    return Advantage(credit[batch.token_turn]), no_state()


PLUGIN = Plugin(
    "turn-returns",
    Seam.ADVANTAGE,
    "IGPO, arXiv 2510.14967: discounted sums of turn rewards normalised inside the group",
    turn_returns,
    TurnReturns,
)
