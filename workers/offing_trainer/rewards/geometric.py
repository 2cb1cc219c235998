"""EAPO: each turn gets the rollout's reward, discounted by the number of turns after it."""

from typing import Annotated

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats, Indices, TrainingBatch
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
from offing_trainer.turn_math import mark_first


class GeometricOptions(PluginOptions):
    gamma: Annotated[float, Field(ge=0, le=1)] = 0.995
    """Discount per turn."""


def geometric(options: GeometricOptions, inputs: RewardInput) -> tuple[Rewards, PluginState]:
    """Compute r[i, t] = gamma^(T_i - t) R_i, as in EAPO. The last turn keeps R_i."""
    batch = inputs.batch
    rollout_reward = inputs.rewards.rollout[batch.turn_rollout]
    discount: Floats = options.gamma ** count_remaining_turns(batch).astype(np.float64)
    return Rewards(inputs.rewards.rollout, discount * rollout_reward + inputs.rewards.turn, by_turn=True), empty_state()


def count_remaining_turns(batch: TrainingBatch) -> Indices:
    """Return the number of turns after each turn, (T,).

    A turn outside the graph's loop belongs to the turn before it.
    """
    begins = np.flatnonzero(mark_first(batch.turn_rollout))
    base = batch.turn_rollout * (batch.turn_number.max(initial=0) + 1)
    number = np.maximum.accumulate(base + batch.turn_number) - base if batch.num_turns else batch.turn_number
    last = np.maximum.reduceat(number, begins) if batch.num_turns else number
    return np.repeat(last, np.diff(np.append(begins, batch.num_turns))) - number


PLUGIN = Plugin(
    "geometric",
    PluginKind.REWARD,
    "IterResearch (EAPO), arXiv 2511.07327: r[i,t] = gamma^(T_i - t) R_i",
    geometric,
    GeometricOptions,
    traits=frozenset({PluginTrait.COST, PluginTrait.TURN_REWARD}),
)
