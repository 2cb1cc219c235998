"""Rewards that look inside a rollout or at its cost: information gain, and tool efficiency."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from offing.core.errors import InvalidInput
from offing_trainer.advantages.turn_returns import PLUGIN, TurnReturnsOptions
from offing_trainer.batch import TrainingBatch, build_training_batch
from offing_trainer.plugin import AdvantageInput, PluginOptions, RewardInput, Rewards
from offing_trainer.rewards.info_gain import info_gain
from offing_trainer.rewards.tool_efficiency import (
    MIN_COST_TABLE,
    ToolEfficiencyOptions,
    compute_efficiency,
    tool_efficiency,
)
from tests.trainer.builders import a_group, a_sample, random_batch, rewarded, turns_of


def unpaid(batch: TrainingBatch) -> Rewards:
    return Rewards(batch.reward, np.zeros(batch.num_turns))


def gained(batch: TrainingBatch, reference: Any, start: Any) -> Rewards:
    columns = {"answer_logprob": np.log(reference), "initial_answer_logprob": np.log(start)}
    return info_gain(PluginOptions(), RewardInput(batch, unpaid(batch), columns, {}))[0]


def test_turns_are_rewarded_for_what_they_add_to_the_references_probability_and_the_last_for_the_outcome() -> None:
    batch = build_training_batch([a_group(a_sample(0.7, ((2, 2, 2, 2),)), a_sample(0.0, ((2,),), run=2))])
    rewards = gained(batch, np.array([0.2, 0.2, 0.5, 0.9, 0.4]), np.array([0.1, 0.3]))
    np.testing.assert_allclose(rewards.turn, [0.1, 0.0, 0.3, 0.7, 0.0])
    assert rewards.by_turn
    assert rewards.turn[:3].sum() == pytest.approx(0.5 - 0.1)


def test_a_task_without_a_reference_is_rewarded_for_its_outcome_alone() -> None:
    batch = build_training_batch([rewarded([1.0], turns_of(3))])
    rewards = gained(batch, np.full(3, np.nan), np.array([np.nan]))
    assert rewards.turn.tolist() == [0.0, 0.0, 1.0]


def test_turn_rewards_are_pooled_by_group_and_discounted_forwards() -> None:
    batch = build_training_batch(
        [rewarded([0.0, 0.0], turns_of(2, 1)), rewarded([0.0], turns_of(2), key="g2", first=3)]
    )
    rewards = Rewards(batch.reward, np.array([1.0, 3.0, 2.0, 5.0, 9.0]), by_turn=True)
    token = PLUGIN.apply(TurnReturnsOptions(gamma=0.5, ddof=0, epsilon=1e-12), AdvantageInput(batch, rewards, {}, {}))[
        0
    ].per_token
    unit = 1.0 / float(np.std([1, 3, 2]))
    expected = [-unit + 0.5 * unit, unit, 0.0, -1 + 0.5, 1.0]
    np.testing.assert_allclose(token[::2], expected, atol=1e-9)


def test_one_turn_alone_in_its_group_gets_no_advantage() -> None:
    batch = build_training_batch([rewarded([1.0])])
    token = PLUGIN.apply(TurnReturnsOptions(), AdvantageInput(batch, unpaid(batch), {}, {}))[0].per_token
    assert not token.any()


def test_efficiency_has_the_worked_values_and_its_peak_at_the_minimum() -> None:
    used = np.array([1.0, 2, 3, 4, 6, 12])
    efficiency = compute_efficiency(used, np.full(6, 3.0), 1.0)
    np.testing.assert_allclose(efficiency, [0.7071, 0.9511, 1.0, 0.9749, 0.8660, 0.5878], atol=1e-4)
    for minimum in (1.0, 2.0, 7.0):
        around = compute_efficiency(np.arange(0.0, 30.0), np.full(30, minimum), 1.0)
        assert np.argmax(around) == minimum
    assert compute_efficiency(np.zeros(2), np.array([0.0, np.nan]), 1.0).tolist() == [1.0, 1.0]
    assert compute_efficiency(np.array([1.0]), np.zeros(1), 1.0)[0] == pytest.approx(np.cos(np.pi / 3))


def efficiency_rewards(rewards: list[float], calls: list[float], table: Any = None) -> tuple[list[float], Any]:
    batch = replace(build_training_batch([rewarded(rewards)]), rollout_stats={"tool_calls": np.array(calls)})
    inputs = RewardInput(batch, unpaid(batch), {}, {MIN_COST_TABLE: table} if table else {})
    result, changed = tool_efficiency(ToolEfficiencyOptions(), inputs)
    return result.rollout.tolist(), changed[MIN_COST_TABLE]


def test_failure_gives_no_reward_and_the_cheapest_success_the_whole() -> None:
    rewards, table = efficiency_rewards([0.0, 1.0, 1.0, 0.0], [0.0, 3.0, 6.0, 9.0])
    assert rewards == pytest.approx([0.0, 1.0, 0.8660, 0.0], abs=1e-4)
    assert table == {"task of g1": 3.0}


def test_the_minimum_cost_of_a_task_is_remembered_and_never_rises() -> None:
    rewards, table = efficiency_rewards([1.0, 0.0], [6.0, 1.0], {"task of g1": 3.0, "other": 1.0})
    assert rewards == pytest.approx([0.8660, 0.0], abs=1e-4)
    assert table == {"task of g1": 3.0, "other": 1.0}


def test_a_cost_that_is_not_known_changes_nothing() -> None:
    assert efficiency_rewards([1.0, -0.1], [np.nan, 2.0]) == ([1.0, -0.1], {})


def test_cost_cannot_be_counted_once_turns_have_rewards() -> None:
    batch = random_batch(1)
    inputs = RewardInput(batch, Rewards(batch.reward, np.zeros(batch.num_turns), by_turn=True), {}, {})
    with pytest.raises(InvalidInput, match="comes after a reward for turns"):
        tool_efficiency(ToolEfficiencyOptions(), inputs)
