"""Flat GAE over turns: one critic and one advantage for all tokens of a turn."""

from typing import Literal

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
    """Standardize the advantages over the batch."""
    entries: Literal["turns", "tokens"] = "turns"
    """The entries of the mean and the standard deviation. `tokens` is as released in verl: a turn counts as often as it
    has trained tokens.
    """


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
    turn_advantage[turns] = _standardize(options, advantage, batch.turn_token_counts[turns])
    return Advantage(turn_advantage[batch.token_turn], {"value": target}), empty_state()


def _standardize(options: TurnGaeOptions, advantage: Floats, token_counts: Indices) -> Floats:
    if not options.standardize:
        return advantage
    if options.entries == "turns":
        return standardize(advantage, np.ones(len(advantage), np.bool_))
    return whiten(advantage, token_counts)


def whiten(values: Floats, counts: Indices) -> Floats:
    """Return (x - mean) / sqrt(variance + 1e-8) of values that occur `counts` times, with the sample's variance.

    It is verl's `masked_whiten`. A single entry gives 0.
    """
    total = int(counts.sum())
    if total < 2:
        return np.zeros_like(values)
    mean = float(counts @ values) / total
    variance = float(counts @ (values - mean) ** 2) / (total - 1)
    return (values - mean) / np.sqrt(variance + 1e-8)


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
