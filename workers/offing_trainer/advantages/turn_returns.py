"""IGPO: discounted turn rewards, normalized over all turns of the group."""

from typing import Literal

import numpy as np
from pydantic import Field

from offing_trainer.grouped_statistics import mean_by_index, std_by_index
from offing_trainer.plugin import Advantage, AdvantageInput, Plugin, PluginKind, PluginOptions, PluginState, empty_state
from offing_trainer.turn_math import accumulate_backward, select_trained_turns


class TurnReturnsOptions(PluginOptions):
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per turn."""
    ddof: Literal[0, 1] = 1
    epsilon: float = Field(default=1e-6, gt=0)
    """Added to the standard deviation."""


def turn_returns(options: TurnReturnsOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    """Compute A_t = the sum over later turns k of gamma^(k - t) r~_k.

    r~ are the turn rewards of the group, normalized together. Turns are pooled over the group and not
    compared by their number, because rollouts have different lengths.
    """
    batch = inputs.batch
    turns, turn_reward = select_trained_turns(batch, inputs.rewards)
    of = batch.rollout_group[batch.turn_rollout[turns]]
    centered = turn_reward - mean_by_index(turn_reward, of, batch.num_groups)[of]
    normal = centered / (std_by_index(turn_reward, of, batch.num_groups, options.ddof)[of] + options.epsilon)
    turn_advantage = np.zeros(batch.num_turns)
    turn_advantage[turns] = accumulate_backward(normal, np.full(len(turns), options.gamma), batch.turn_rollout[turns])
    return Advantage(turn_advantage[batch.token_turn]), empty_state()


PLUGIN = Plugin(
    "turn-returns",
    PluginKind.ADVANTAGE,
    "IGPO, arXiv 2510.14967: discounted sums of turn rewards normalized within the group",
    turn_returns,
    TurnReturnsOptions,
)
