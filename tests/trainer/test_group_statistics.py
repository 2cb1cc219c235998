"""What rollouts of a task are credited with beside one another, against values computed from the formulas by hand."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing_trainer.batch import RolloutGroup, TrainingRollout
from offing_trainer.grouped_statistics import mean_by_index, std_by_index, sum_by_index
from offing_trainer.pipeline import Pipeline
from offing_trainer.training_step import compute_advantages
from tests.trainer.builders import (
    a_group,
    a_pipeline,
    a_recipe,
    a_sample,
    a_step,
    by_row,
    by_turn,
    random_groups,
    rewarded,
    rounds_of,
    seen_by,
    turns_of,
)

ROUNDS, WON = (5, 20, 10, 32), (1.0, 1.0, 0.0, 0.0)
"""Lengths and rewards of four rollouts of a task."""


def group_z(**options: Any) -> Pipeline:
    return a_pipeline(advantage={"name": "group-z", **options})


def z_of(*groups: RolloutGroup, **options: Any) -> list[float]:
    """The advantage of each row."""
    step = a_step(group_z(**options), groups)
    return by_row(step.batch, step.advantage)


def eapo(rounds: tuple[int, ...], rewards: tuple[float, ...], **advantage: Any) -> list[np.ndarray[Any, Any]]:
    """The advantages of each rollout's rounds."""
    options = {"name": "group-z", "unit": "turns", "ddof": 0, **advantage}
    pipeline = a_recipe("eapo", advantage=options)
    step = a_step(pipeline, [rewarded(rewards, rounds_of(*rounds))])
    result = np.array(by_turn(step.batch, step.advantage))
    return np.split(result, np.cumsum(rounds)[:-1])


# Flow-GRPO --------------------------------------------------------------------------------------------------------


def test_a_rollout_counts_once_however_many_turns_it_took() -> None:
    group = rewarded([1.0] * 4 + [0.0] * 4, turns_of(*[1] * 4, *[3] * 4))
    assert z_of(group) == pytest.approx([0.935413] * 4 + [-0.935413] * 4, abs=1e-5)


def test_as_released_every_turn_counts_and_long_rollouts_pull_the_mean() -> None:
    group = rewarded([1.0] * 4 + [0.0] * 4, turns_of(*[1] * 4, *[3] * 4))
    step = a_step(a_recipe("flow-grpo-released"), [group], mode="decoupled")
    assert by_row(step.batch, step.advantage) == pytest.approx([1.677048] * 4 + [-0.559016] * 4, abs=1e-5)


def test_all_turns_of_a_rollout_share_its_advantage() -> None:
    step = a_step(group_z(), [rewarded([1.0, 0.0], turns_of(3, 2))])
    assert by_turn(step.batch, step.advantage) == pytest.approx([0.707106] * 3 + [-0.707106] * 2, abs=1e-5)


# Deviations and what is left when there is none ---------------------------------------------------------------------


def test_uniform_rewards_and_a_rollout_alone_teach_nothing() -> None:
    assert z_of(rewarded([1.0, 1.0, 1.0]), rewarded([1.0], key="g2", first=9)) == [0.0] * 4
    assert z_of(rewarded([0.1, 0.1, 0.1]), epsilon=0.0) == [0.0] * 3


def test_an_entry_alone_may_keep_its_score_as_released() -> None:
    assert z_of(rewarded([0.7]), single_entry="score") == pytest.approx([0.7])


def test_a_floor_keeps_small_differences_small() -> None:
    assert z_of(rewarded([1.0, 0.99]), min_std=1.0) == pytest.approx([0.005, -0.005], abs=1e-6)


def test_the_deviation_may_be_that_of_the_step_or_none() -> None:
    groups = (rewarded([1.0, 0.0]), rewarded([3.0, 1.0], key="g2", first=7))
    of_step = np.std([1, 0, 3, 1], ddof=1)
    assert z_of(*groups, std="batch") == pytest.approx((np.array([0.5, -0.5, 1, -1]) / of_step).tolist(), abs=1e-5)
    assert z_of(*groups, std="none") == [0.5, -0.5, 1.0, -1.0]


def test_the_baseline_that_leaves_ones_own_score_out() -> None:
    step = a_step(a_pipeline(advantage={"name": "leave-one-out"}), [rewarded([1.0, 0.0, 0.0, 1.0])])
    assert by_row(step.batch, step.advantage) == pytest.approx([0.666667, -0.666667, -0.666667, 0.666667], abs=1e-6)


def test_the_baseline_of_a_step_ignores_groups() -> None:
    groups = (rewarded([1.0]), rewarded([0.0, 0.5], key="g2", first=5))
    step = a_step(a_pipeline(advantage={"name": "batch-baseline"}), groups)
    assert by_row(step.batch, step.advantage) == pytest.approx([0.5, -0.5, 0.0])
    scaled = a_step(a_pipeline(advantage={"name": "batch-baseline", "standardize": True}), groups)
    assert by_row(scaled.batch, scaled.advantage) == pytest.approx([1.0, -1.0, 0.0], abs=1e-5)


# EAPO -------------------------------------------------------------------------------------------------------------


def test_each_turn_is_rewarded_by_how_soon_the_answer_came() -> None:
    step = a_step(a_recipe("eapo"), [rewarded(WON, rounds_of(*ROUNDS))])
    expected = [
        0.995 ** (rounds - t) * won for rounds, won in zip(ROUNDS, WON, strict=True) for t in range(1, rounds + 1)
    ]
    assert step.rewards.turn.tolist() == pytest.approx(expected, abs=1e-12)
    third_of_five, third_of_twenty = step.rewards.turn[2], step.rewards.turn[5 + 2]
    assert (third_of_five, third_of_twenty) == pytest.approx((0.990025, 0.918316), abs=1e-6)


@pytest.mark.parametrize(
    ("rounds", "rewards", "ddof", "mean", "total"),
    [
        (ROUNDS, WON, 0, (1.35740, 1.27968, -0.77096, -0.77096), (6.787, 25.594, -7.710, -24.671)),
        (ROUNDS, WON, 1, (1.34723, 1.27009, -0.76519, -0.76519), (6.736, 25.402, -7.652, -24.486)),
        ((5, 20), (1.0, 1.0), 0, (1.00573, -0.25143), (5.029, -5.029)),
    ],
)
def test_rounds_are_compared_with_all_rounds_of_their_task(
    rounds: tuple[int, ...], rewards: tuple[float, ...], ddof: int, mean: tuple[float, ...], total: tuple[float, ...]
) -> None:
    result = eapo(rounds, rewards, ddof=ddof)
    assert [part.mean() for part in result] == pytest.approx(mean, abs=1e-5)
    assert [part.sum() for part in result] == pytest.approx(total, abs=6e-4)


def test_faithful_statistics_blow_small_differences_up_and_a_floor_does_not() -> None:
    _, long = eapo((5, 20), (1.0, 1.0))
    assert (long[0], long[-1]) == pytest.approx((-1.81, 1.35), abs=5e-3)
    _, held = eapo((5, 20), (1.0, 1.0), min_std=1.0)
    assert np.abs(held).max() < 0.06


def test_deduplicated_statistics_count_each_rollout_once() -> None:
    result = eapo(ROUNDS, WON, dedupe=True)
    paid = [np.mean(0.995 ** np.arange(rounds)) * won for rounds, won in zip(ROUNDS, WON, strict=True)]
    centre = np.mean(paid)
    squares = [
        np.mean((won * 0.995 ** np.arange(rounds) - centre) ** 2) for rounds, won in zip(ROUNDS, WON, strict=True)
    ]
    assert result[2][0] == pytest.approx(-centre / (np.sqrt(np.mean(squares)) + 1e-6), abs=1e-9)


def test_all_failures_are_zero_and_not_undefined() -> None:
    assert np.concatenate(eapo((3, 4), (0.0, 0.0))).tolist() == [0.0] * 7


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_of_two_successes_the_shorter_is_ahead_round_by_round(one: int, more: int, failed: int) -> None:
    short, long, _ = eapo((one, one + more, failed), (1.0, 1.0, 0.0))
    assert short.mean() > long.mean()
    assert (short > long[:one]).all()


def test_without_discount_and_with_one_round_it_is_grpo() -> None:
    rewards = (1.0, 0.0, 0.3, 1.0)
    pipeline = a_recipe(
        "eapo", rewards={"name": "geometric", "gamma": 1.0}, advantage={"name": "group-z", "unit": "turns"}
    )
    step = a_step(pipeline, [rewarded(rewards)])
    assert by_row(step.batch, step.advantage) == pytest.approx(grpo(np.array(rewards)), abs=1e-6)


def test_what_no_role_could_use_is_no_round() -> None:
    sample = a_sample(1.0, rounds_of(3)[0], fractures=["root", "rejected", "workspace_reset"])
    step = a_step(a_recipe("eapo"), [a_group(sample, a_sample(0.0, run=2))])
    assert step.batch.num_rows == 3
    rendered = a_step(a_recipe("eapo", view={"name": "policy-turns", "include_rejected": True}), [a_group(sample)])
    assert rendered.batch.num_rows == 3


def test_a_turn_that_is_context_alone_is_no_entry() -> None:
    group = rewarded([1.0, 0.0], turns_of(2, 2))
    row = group.rollouts[0].rows[0]
    quiet = replace(row, loss_mask=row.loss_mask & (row.turn_index == 0))
    step = a_step(
        group_z(unit="turns"), [replace(group, rollouts=(TrainingRollout(row.metadata, (quiet,)), group.rollouts[1]))]
    )
    assert by_turn(step.batch, step.advantage) == pytest.approx([1.154699, -0.577349, -0.577349], abs=1e-5)


def test_turns_outside_the_loop_belong_to_the_round_before_them() -> None:
    sample = a_sample(1.0, ((1, 1, 1, 1),), turns={"turn": (0, 1, 2, 0)})
    step = a_step(a_recipe("eapo"), [a_group(sample, a_sample(0.0, run=2))])
    assert step.rewards.turn[:4].tolist() == pytest.approx([0.995**2, 0.995, 1, 1])


def test_the_rewards_of_turns_are_all_that_their_rollout_scores() -> None:
    pipeline = a_pipeline(rewards={"name": "geometric", "gamma": 0.5})
    step = a_step(pipeline, [rewarded([1.0, 0.5, 0.0], rounds_of(2, 1, 1))])
    won, half, failed = grpo(np.array([1.5, 0.5, 0.0]))
    assert by_row(step.batch, step.advantage) == pytest.approx([won, won, half, failed], abs=1e-9)


# DCPO and SUPO ----------------------------------------------------------------------------------------------------


def grpo(rewards: np.ndarray[Any, Any]) -> list[float]:
    """verl's formula: sample deviation, 1e-6."""
    return ((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-6)).tolist()


def test_violations_are_rewarded_less_than_failures() -> None:
    samples = [
        a_sample(reward, run=run, outcome=outcome)
        for run, (reward, outcome) in enumerate(
            [(1.0, "answered"), (0.0, "answered"), (0.0, "violated"), (1.0, "done"), (0.0, "answered")], 1
        )
    ]
    step = a_step(a_pipeline(rewards={"name": "violation"}), [a_group(*samples)])
    expected = [1.092604, -0.669661, -0.845887, 1.092604, -0.669661]
    assert by_row(step.batch, step.advantage) == pytest.approx(expected, abs=1e-5)
    assert expected == pytest.approx(grpo(np.array([1, 0, -0.1, 1, 0])), abs=1e-6)


def test_every_segment_has_its_rollouts_advantage_and_counts_no_more() -> None:
    group = rewarded([1.0, 0.0, -0.1], [((2,),) * 3, ((2,),), ((2,),) * 2])
    assert z_of(group) == pytest.approx([1.150791] * 3 + [-0.493196] + [-0.657595] * 2, abs=1e-5)
    assert z_of(group, unit="rows") == pytest.approx([0.911092] * 3 + [-0.797205] + [-0.968035] * 2, abs=1e-5)


def test_spans_between_summaries_share_the_rollouts_advantage() -> None:
    group = rewarded([1.0, 0.0], [((2,),) * 3, ((2,),)])
    step = a_step(a_recipe("supo"), [group])
    assert by_row(step.batch, step.advantage) == pytest.approx([0.707106] * 3 + [-0.707106], abs=2e-6)


def test_a_rollout_that_is_cut_off_is_not_trained_and_still_counts() -> None:
    def others(reward: float) -> list[float]:
        long = a_sample(reward, ((2,), (2,)), run=3, outcome="truncated")
        step = a_step(a_recipe("supo"), [a_group(a_sample(1.0, run=1), a_sample(0.0, run=2), long)])
        assert [key.split("/")[0][-1] for key in step.batch.row_keys] == ["1", "2"]
        return by_row(step.batch, step.advantage)

    assert others(0.0) == pytest.approx([1.154699, -0.577349], abs=1e-5)
    assert others(1.0) == pytest.approx([0.577349, -1.154699], abs=1e-5)


# All of them ------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=9))
@settings(max_examples=50, deadline=None)
def test_by_default_it_is_verls_grpo(rewards: list[float]) -> None:
    assert z_of(rewarded(rewards)) == pytest.approx(grpo(np.array(rewards)), abs=1e-6)


def test_the_order_of_groups_and_rollouts_does_not_matter() -> None:
    groups = random_groups(5)
    turned = [a_group(*reversed(g.rollouts), key=g.key) for g in reversed(groups)]
    for over in ("rollouts", "turns", "rows"):
        one, other = (a_step(group_z(unit=over), order) for order in (groups, turned))
        mine, theirs = (dict(zip(s.batch.row_keys, by_row(s.batch, s.advantage), strict=True)) for s in (one, other))
        assert mine == pytest.approx(theirs, abs=1e-9)


def test_a_group_knows_nothing_of_another() -> None:
    one, two = random_groups(6, groups=2)
    assert z_of(one, two) == pytest.approx(z_of(one) + z_of(two), abs=1e-12)


def test_sums_by_group_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(3)
    values, of, weight = rng.normal(size=50), rng.integers(0, 6, 50), rng.uniform(size=50)
    for nth in range(6):
        mine = values[of == nth]
        assert sum_by_index(values, of, 7)[nth] == pytest.approx(mine.sum())
        assert mean_by_index(values, of, 7)[nth] == pytest.approx(mine.mean())
        assert std_by_index(values, of, 7, 1)[nth] == pytest.approx(mine.std(ddof=1))
        assert mean_by_index(values, of, 7, weight)[nth] == pytest.approx(np.average(mine, weights=weight[of == nth]))
    assert std_by_index(values, of, 7)[6] == mean_by_index(values, of, 7)[6] == 0


def test_advantages_of_a_hundred_thousand_turns_take_much_less_than_a_second() -> None:
    groups = [rewarded([1.0, 0.0] * 4, turns_of(*[50] * 8, length=1), key=f"g{n}", first=8 * n) for n in range(250)]
    pipeline = a_recipe("eapo")
    seen = seen_by(pipeline, groups)
    began = time.thread_time()
    step = compute_advantages(pipeline, seen, {}, np.random.default_rng(0))
    assert time.thread_time() - began < 0.7
    assert step.batch.num_turns == len(step.advantage) == 100_000


# GiGPO ------------------------------------------------------------------------------------------------------------


def gigpo_of(*groups: RolloutGroup, **options: Any) -> list[float]:
    """The advantage of each turn."""
    step = a_step(a_pipeline(advantage={"name": "gigpo", "gamma": 0.5, **options}), groups)
    return by_turn(step.batch, step.advantage)


def test_turns_in_the_same_state_are_compared_with_one_another() -> None:
    """Rollouts of two turns share both states: returns 0.5, 0 in the first state and 1, 0 in the second."""
    group = rewarded([1.0, 0.0], turns_of(2, 2))
    z = 0.5 / 0.5**0.5
    assert np.ravel(gigpo_of(group)) == pytest.approx([2 * z, 2 * z, -2 * z, -2 * z], abs=1e-4)
    centered = np.ravel(gigpo_of(group, std="none"))
    assert centered == pytest.approx([0.5 + 0.25, 0.5 + 0.5, -0.5 - 0.25, -0.5 - 0.5])


def test_a_turn_that_is_alone_in_its_state_has_the_advantage_of_its_rollout() -> None:
    group = rewarded([1.0, 0.0], turns_of(1, 3))
    advantages = np.ravel(gigpo_of(group, std="none"))
    assert advantages[-2:] == pytest.approx([-0.5, -0.5])
    assert advantages[0] == pytest.approx(1.0)


def test_without_the_part_of_turns_gigpo_is_a_z_score_over_rollouts() -> None:
    groups = random_groups(3, 3, 4)
    step = a_step(group_z(), groups)
    assert np.ravel(gigpo_of(*groups, step_weight=0.0)) == pytest.approx(np.ravel(by_turn(step.batch, step.advantage)))


def test_states_of_other_groups_do_not_count() -> None:
    one, other = rewarded([1.0, 0.0], turns_of(2, 2)), rewarded([1.0, 1.0], turns_of(2, 2), key="g2", first=11)
    assert np.ravel(gigpo_of(one, other))[:4] == pytest.approx(np.ravel(gigpo_of(one)))
