"""Each round gets the rollout's reward, discounted by how many rounds came after it."""

from typing import Annotated

import numpy as np
from pydantic import Field

from offing_trainer.batch import Batch, Floats, Places
from offing_trainer.seam import Claim, Options, Plugin, RewardGiven, Rewards, Seam, State, no_state
from offing_trainer.turns import opens


class Geometric(Options):
    gamma: Annotated[float, Field(ge=0, le=1)] = 0.995
    """A round."""


def geometric(options: Geometric, given: RewardGiven) -> tuple[Rewards, State]:
    """r[i, t] = gamma^(T_i - t) R_i, EAPO's; the answering round keeps R_i."""
    batch = given.batch
    earned = given.rewards.rollout[batch.turn_rollout]
    discount: Floats = options.gamma ** rounds_left(batch).astype(np.float64)
    return Rewards(given.rewards.rollout, discount * earned + given.rewards.turn, by_turn=True), no_state()


def rounds_left(batch: Batch) -> Places:
    """(T,) rounds after each turn's. A turn outside the graph's loop belongs to the round before it."""
    begins = np.flatnonzero(opens(batch.turn_rollout))
    base = batch.turn_rollout * (batch.turn_number.max(initial=0) + 1)
    number = np.maximum.accumulate(base + batch.turn_number) - base if batch.turns else batch.turn_number
    last = np.maximum.reduceat(number, begins) if batch.turns else number
    return np.repeat(last, np.diff(np.append(begins, batch.turns))) - number


PLUGIN = Plugin(
    "geometric",
    Seam.REWARD,
    "IterResearch (EAPO), arXiv 2511.07327: r[i,t] = gamma^(T_i - t) R_i",
    geometric,
    Geometric,
    claims=frozenset({Claim.COST, Claim.TURN_REWARD}),
)
