"""The success tracker: its baseline, what it remembers, and which tasks it would choose next."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from offing.core.errors import InvalidInput
from offing_trainer.advantages.tracker import PLUGIN, TRACKER_TABLE, TrackerOptions
from offing_trainer.batch import RolloutGroup, build_training_batch
from offing_trainer.plugin import AdvantageInput, GroupSelectorInput, Rewards
from offing_trainer.selectors.learning_potential import (
    LearningPotentialOptions,
    compute_task_weights,
    learning_potential,
)
from tests.trainer.builders import a_group, a_sample, rewarded

SEEN = {"alpha": 4.0, "beta": 4.0, "version": 1}
RAW = TrackerOptions(standardize=False, min_retention=0.0)


def one(reward: float | None, *, task: str = "t1", run: int = 1, version: int = 2) -> RolloutGroup:
    sample = a_sample(reward, run=run, policy=f"planner@{version}", turns={"policy": (f"planner@{version}",)})
    return a_group(sample, key=f"g{run}", task=task)


def tracked(groups: list[RolloutGroup], options: TrackerOptions = RAW, table: Any = None) -> tuple[Any, Any]:
    batch = build_training_batch(groups)
    inputs = AdvantageInput(
        batch, Rewards(batch.reward, np.zeros(batch.num_turns)), {}, {TRACKER_TABLE: table or {"t1": SEEN}}
    )
    advantages, state = PLUGIN.apply(options, inputs)
    return advantages.per_token, state[TRACKER_TABLE]


def test_the_worked_values() -> None:
    token, table = tracked([one(1.0)])
    assert token[0] == pytest.approx(0.5)
    assert table["t1"]["alpha"] == pytest.approx(3.828427, abs=1e-6)
    assert table["t1"]["beta"] == pytest.approx(2.828427, abs=1e-6)


def test_the_baseline_is_read_before_it_is_updated() -> None:
    token, table = tracked([one(1.0)])
    again, _ = tracked([one(1.0, version=3)], table=table)
    assert token[0] == pytest.approx(1 - 4 / 8)
    assert again[0] == pytest.approx(1 - 3.828427 / 6.656854, abs=1e-6)


def test_it_is_a_moving_average_with_rate_one_over_what_is_known() -> None:
    rho, known = 2**-0.5, 8.0
    _, table = tracked([one(0.7)])
    value = table["t1"]["alpha"] / (table["t1"]["alpha"] + table["t1"]["beta"])
    assert value == pytest.approx(0.5 + (0.7 - 0.5) / (rho * known + 1))


def test_an_unchanged_policy_forgets_the_minimum_and_a_distant_one_the_maximum() -> None:
    _, same = tracked([one(0.0, version=1)])
    assert same["t1"]["alpha"] == pytest.approx(0.96 * 4)
    _, far = tracked([one(0.0, version=90)], TrackerOptions())
    assert far["t1"]["alpha"] == pytest.approx(0.875 * 4)


def test_a_task_forgets_once_a_step_however_many_rollouts_it_has() -> None:
    _, table = tracked([one(1.0), one(0.0, run=2)])
    assert table["t1"]["alpha"] + table["t1"]["beta"] == pytest.approx(2**-0.5 * 8 + 2)


def test_a_replayed_rollout_says_nothing_about_success_now() -> None:
    sample = one(1.0).rollouts[0]
    _, table = tracked([a_group(replace(sample, replayed=True))])
    assert table == {"t1": SEEN}


def test_advantages_are_standardized_over_the_step_and_tasks_need_no_group() -> None:
    token, table = tracked([one(1.0), one(0.0, task="t2", run=2)], TrackerOptions())
    np.testing.assert_allclose(token, np.repeat([1.0, -1.0], 3), atol=1e-7)
    assert set(table) == {"t1", "t2"}
    assert table["t2"]["beta"] - table["t2"]["alpha"] == pytest.approx(1.0)


def test_rewards_that_are_no_share_of_success_are_rejected_with_the_remedy() -> None:
    with pytest.raises(InvalidInput, match=r"needs rewards from 0 to 1, but they range from -0\.1 to 1"):
        tracked([rewarded([1.0, -0.1])])


def test_tasks_in_between_have_most_potential_and_no_task_has_none() -> None:
    table = {
        "solved": {"alpha": 8.0, "beta": 0.0, "version": 1},
        "even": {"alpha": 4.0, "beta": 4.0, "version": 1},
        "hard": {"alpha": 2.0, "beta": 6.0, "version": 1},
    }
    task_weights = compute_task_weights(LearningPotentialOptions(), table, ["solved", "even", "hard", "new"])
    np.testing.assert_allclose(task_weights, [0.05, 0.55, np.sqrt(0.25 * 0.75) + 0.05, 0.55])
    less = compute_task_weights(
        LearningPotentialOptions(novelty_exponent=1.0), {"even": {"alpha": 8.0, "beta": 8.0, "version": 1}}, ["even"]
    )
    assert less[0] == pytest.approx(0.5 / 16 + 0.05)


def test_groups_are_drawn_by_their_tasks_potential() -> None:
    table = {f"t{n}": {"alpha": 4.0 if n % 2 else 8.0, "beta": 4.0 if n % 2 else 0.0, "version": 1} for n in range(8)}
    groups = [one(1.0, task=f"t{n}", run=n + 1) for n in range(8)]
    drawn = [
        group.task
        for seed in range(200)
        for group in learning_potential(
            LearningPotentialOptions(max_groups=2),
            GroupSelectorInput(groups, {TRACKER_TABLE: table}, np.random.default_rng(seed)),
        )[0]
    ]
    assert len(drawn) == 400
    even = sum(int(task[1:]) % 2 for task in drawn)
    assert 330 < even < 395
