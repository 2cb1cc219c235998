"""GiGPO: the z-score of a rollout in its group, and that of a turn among the turns of the group in the same state.

The state of a turn is what the policy read before it, as `state_key` of its role call. Graphs that rebuild each prompt
from a bounded state return to a state; in graphs whose prompts only grow, rollouts share a state while all their calls
and results are equal.
"""

from typing import Literal

import numpy as np
from pydantic import Field

from offing_trainer.advantages.group_z import GroupZOptions, ScoreEntries, group_z
from offing_trainer.batch import Floats, Indices, TrainingBatch
from offing_trainer.grouped_statistics import count_by_index, mean_by_index, std_by_index
from offing_trainer.plugin import Advantage, AdvantageInput, Plugin, PluginKind, PluginOptions, PluginState, empty_state
from offing_trainer.turn_math import accumulate_backward, select_trained_turns


class GigpoOptions(PluginOptions):
    gamma: float = Field(default=0.95, ge=0, le=1)
    """Discount per turn of the returns that are compared within a state."""
    step_weight: float = Field(default=1.0, ge=0)
    """Weight of the turn's part. `0` leaves z-scores over rollouts."""
    std: Literal["group", "none"] = "group"
    """The standard deviation to divide both parts by. `none` only subtracts the mean, the default of the release."""
    ddof: Literal[0, 1] = 1
    epsilon: float = Field(default=1e-6, ge=0)
    """Added to the standard deviation."""


def gigpo(options: GigpoOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    """Compute A = A_rollout + step_weight A_turn. A turn that is alone in its state has A_turn = 0."""
    whole = GroupZOptions(std=options.std, ddof=options.ddof, epsilon=options.epsilon)
    of_rollout, _ = group_z(whole, inputs)
    of_turn = _compare_states(options, inputs)
    return Advantage(of_rollout.per_token + options.step_weight * of_turn[inputs.batch.token_turn]), empty_state()


def _compare_states(options: GigpoOptions, inputs: AdvantageInput) -> Floats:
    """Return the advantage of each turn among those of its group in the same state, (T,)."""
    batch, result = inputs.batch, np.zeros(inputs.batch.num_turns)
    turns, turn_reward = select_trained_turns(batch, inputs.rewards)
    owner = batch.turn_rollout[turns]
    returns = accumulate_backward(turn_reward, np.full(len(turns), options.gamma), owner)
    known = batch.turn_state[turns] >= 0
    turns, returns, owner = turns[known], returns[known], owner[known]
    state, count = _index_states(batch, turns)
    entries = ScoreEntries(returns, owner, state, turns)
    centered = entries.subtract_mean(mean_by_index(returns, state, count)[state])
    if options.std == "group":
        centered = centered / (std_by_index(returns, state, count, options.ddof)[state] + options.epsilon)
    result[turns] = np.where(count_by_index(state, count)[state] > 1, centered, 0.0)
    return result


def _index_states(batch: TrainingBatch, turns: Indices) -> tuple[Indices, int]:
    """Return the index of each turn's pair of group and state, and the number of pairs."""
    pairs = batch.rollout_group[batch.turn_rollout[turns]] * (1 + int(batch.turn_state.max(initial=0)))
    unique, index = np.unique(pairs + batch.turn_state[turns], return_inverse=True)
    return index.astype(np.int64), len(unique)


PLUGIN = Plugin(
    "gigpo",
    PluginKind.ADVANTAGE,
    "GiGPO, arXiv 2505.10978: z-scores over rollouts, and over turns of a group in the same state",
    gigpo,
    GigpoOptions,
)
