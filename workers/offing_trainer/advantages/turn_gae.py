"""Flat GAE over turns: one critic and one advantage for all tokens of a turn."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats, Indices
from offing_trainer.critic import read_value_column
from offing_trainer.hierarchical_gae import TruncationValue
from offing_trainer.plugin import Advantage, AdvantageInput, Plugin, PluginKind, PluginOptions, PluginState, empty_state
from offing_trainer.turn_math import (
    accumulate_backward,
    is_truncated,
    mark_last,
    select_trained_turns,
    shift_from_next,
    standardize,
)


class TurnGaeOptions(PluginOptions):
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per turn."""
    lam: float = Field(default=1.0, ge=0, le=1)
    at_truncation: TruncationValue = TruncationValue.OFF
    """Value after a truncated rollout. `last-value` uses the value of its last turn."""
    standardize: bool = True
    """Standardize the advantages over all turns of the batch."""


def turn_gae(options: TurnGaeOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    batch = inputs.batch
    turns, turn_reward = select_trained_turns(batch, inputs.rewards)
    owner = batch.turn_rollout[turns]
    value = read_value_column("value", inputs.columns["value"][turns], np.ones(len(turns), np.bool_))
    future = shift_from_next(value, mark_last(owner), _bootstrap_values(options, inputs, turns, value))
    td_error = turn_reward + options.gamma * future - value
    advantage = accumulate_backward(td_error, np.full(len(turns), options.gamma * options.lam), owner)
    turn_advantage, target = np.zeros(batch.num_turns), np.full(batch.num_turns, np.nan)
    target[turns] = advantage + value
    turn_advantage[turns] = standardize(advantage, np.ones(len(turns), np.bool_)) if options.standardize else advantage
    return Advantage(turn_advantage[batch.token_turn], {"value": target}), empty_state()


def _bootstrap_values(options: TurnGaeOptions, inputs: AdvantageInput, turns: Indices, value: Floats) -> Floats:
    truncated = is_truncated(inputs.batch)[turns]
    if options.at_truncation is TruncationValue.NEXT_VALUE:
        return read_value_column(
            "value_final", inputs.columns["value_final"][inputs.batch.turn_rollout[turns]], truncated
        )
    return (
        np.where(truncated, value, 0.0) if options.at_truncation is TruncationValue.LAST_VALUE else np.zeros(len(turns))
    )


PLUGIN = Plugin(
    "turn-gae",
    PluginKind.ADVANTAGE,
    "Schulman et al., arXiv 1506.02438, with each turn as one action",
    turn_gae,
    TurnGaeOptions,
    needs=frozenset({"value"}),
    needs_for_options=lambda options: frozenset(
        {"value_final"} if options.at_truncation is TruncationValue.NEXT_VALUE else ()
    ),
)
