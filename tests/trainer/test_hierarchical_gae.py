"""Credit in two levels against worked values and its limits."""

from typing import Any

import numpy as np
import pytest

from offing_trainer import hierarchical_gae
from offing_trainer.hierarchical_gae import TruncationValue, TurnSequence, build_turn_sequence
from offing_trainer.turn_math import accumulate_backward

LOW = (0.30, 0.35, 0.40, 0.45, 0.50, 0.60, 0.80)
HIGH = (0.25, np.nan, np.nan, 0.42, np.nan, 0.55, np.nan)
TERM = np.array((0.26, 0.31, 0.36, 0.41, 0.46, 0.51, 0.56))
REWARDS = (0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0)
BEGINS = (True, False, False, True, False, True, False)
DISCOUNTED, PLAIN = (0.95, 0.9, 0.8), (1.0, 1.0, 0.95)


def a_walk(
    paid: tuple[float, ...] = REWARDS, begins: tuple[bool, ...] = BEGINS, *, cut: bool = False, **more: Any
) -> TurnSequence:
    values = {"low": LOW, "high": HIGH} | more
    return build_turn_sequence(
        np.zeros(7, np.int64),
        np.array(begins),
        np.array(paid),
        np.array(values["low"]),
        np.array(values["high"]),
        np.full(7, cut),
        None if "after" not in more else np.array(more["after"]),
    )


def streams(
    walk: TurnSequence, how: tuple[float, float, float], at_truncation: TruncationValue = TruncationValue.OFF
) -> tuple[Any, Any, Any]:
    gamma, lam_turn, lam_segment = how
    low = hierarchical_gae.compute_action_stream(walk, gamma, lam_turn, at_truncation).advantage
    high = hierarchical_gae.compute_subgoal_stream(walk, gamma, lam_segment, at_truncation).advantage[
        walk.starts_segment
    ]
    return low, high, hierarchical_gae.compute_switch_stream(walk, gamma, at_truncation, TERM).advantage


@pytest.mark.parametrize(
    ("how", "low", "high", "switch"),
    [
        (
            DISCOUNTED,
            (0.203624, 0.200145, 0.199, 0.044237, 0.0225, 0.331, 0.2),
            (0.541071, 0.365175, 0.4),
            (0.280597, 0.25905, 0.239, 0.086375, 0.0625, 0.44, 0.44),
        ),
        (
            PLAIN,
            (0.32, 0.27, 0.22, 0.1, 0.05, 0.4, 0.2),
            (0.899625, 0.5575, 0.45),
            (0.36, 0.31, 0.26, 0.14, 0.09, 0.49, 0.44),
        ),
    ],
)
def test_the_streams_of_a_finished_rollout_are_the_worked_ones(how: Any, low: Any, high: Any, switch: Any) -> None:
    result = streams(a_walk(), how)
    for stream, expected in zip(result, (low, high, switch), strict=True):
        np.testing.assert_allclose(stream, expected, atol=1e-6)


def test_the_streams_of_a_cut_rollout_are_the_worked_ones() -> None:
    walk = a_walk(paid=(0.0,) * 7, cut=True)
    low, high, _ = streams(walk, DISCOUNTED)
    np.testing.assert_allclose(low, (0.057419, 0.029145, -0.001, 0.044237, 0.0225, -0.524, -0.8), atol=1e-6)
    np.testing.assert_allclose(high, (-0.109888, -0.320725, -0.55), atol=1e-6)
    low, high, _ = streams(walk, DISCOUNTED, TruncationValue.LAST_VALUE)
    np.testing.assert_allclose(low, (0.057419, 0.029145, -0.001, 0.044237, 0.0225, 0.1258, -0.04), atol=1e-6)
    np.testing.assert_allclose(high, (0.135927, 0.037658, -0.053625), atol=1e-6)


def test_a_rollout_that_ended_is_never_given_a_future() -> None:
    for ours, plain in zip(
        streams(a_walk(), DISCOUNTED, TruncationValue.LAST_VALUE),
        streams(a_walk(), DISCOUNTED, TruncationValue.OFF),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, plain)


def test_the_value_after_the_last_observation_ends_a_cut_rollout() -> None:
    walk = a_walk(paid=(0.0,) * 7, cut=True, after=(0.9,) * 7)
    low, high, switch = streams(walk, DISCOUNTED, TruncationValue.NEXT_VALUE)
    assert low[-1] == pytest.approx(0.95 * 0.9 - 0.80)
    assert high[-1] == pytest.approx(0.95**2 * 0.9 - 0.55)
    assert switch[-1] == pytest.approx(0.95 * 0.9 - 0.56)


def gae(values: Any, how: tuple[float, float]) -> Any:
    gamma, lam = how
    surprise = np.array(REWARDS) + gamma * np.append(values[1:], 0.0) - values
    return accumulate_backward(surprise, np.full(7, gamma * lam), np.zeros(7))


def test_where_every_turn_keeps_the_low_stream_is_turn_gae() -> None:
    low, _, _ = streams(a_walk(begins=(False,) * 7), DISCOUNTED)
    np.testing.assert_array_equal(low, gae(np.array(LOW), (0.95, 0.9)))


def test_where_every_turn_switches_the_high_stream_is_turn_gae_and_the_low_one_a_single_step() -> None:
    high = np.array(LOW) - 0.1
    walk = a_walk(begins=(True,) * 7, high=high)
    low, result, _ = streams(walk, DISCOUNTED)
    np.testing.assert_allclose(result, gae(high, (0.95, 0.8)), atol=1e-15)
    np.testing.assert_allclose(low, np.array(REWARDS) + 0.95 * np.append(high[1:], 0.0) - LOW, atol=1e-15)
    np.testing.assert_array_equal(
        low, hierarchical_gae.compute_action_stream(walk, 0.95, 0.1, TruncationValue.OFF).advantage
    )


def test_a_reward_in_a_later_segment_reaches_earlier_ones_through_the_high_stream_alone() -> None:
    gamma, lam = 0.95, 0.8
    before, after = streams(a_walk(), DISCOUNTED), streams(a_walk(paid=(*REWARDS[:6], 2.0)), DISCOUNTED)
    np.testing.assert_array_equal(after[0][:5], before[0][:5])
    step = gamma * 1.0
    carried = [gamma**5 * lam**2 * step, gamma**2 * lam * step, step]
    np.testing.assert_allclose(after[1] - before[1], carried, atol=1e-12)


def test_the_papers_form_gives_a_switch_the_value_of_a_new_subgoal() -> None:
    high = np.array((0.25, 0.3, 0.35, 0.42, 0.5, 0.55, 0.6))
    stored, chance = np.array((0.0, 0.35, 0.40, 0.30, 0.50, 0.50, 0.80)), np.full(7, 0.25)
    result = hierarchical_gae.compute_paper_switch_stream(a_walk(high=high), stored, chance).advantage
    expected = (0.0, -0.25 * -0.05, -0.25 * -0.05, 0.75 * 0.12, 0.0, 0.75 * 0.05, -0.25 * -0.2)
    np.testing.assert_allclose(result, expected, atol=1e-12)


def test_targets_are_lambda_returns_or_one_step() -> None:
    walk = a_walk()
    returns = hierarchical_gae.compute_action_stream(walk, 0.95, 0.9, TruncationValue.OFF)
    np.testing.assert_allclose(returns.target, returns.advantage + LOW)
    single = hierarchical_gae.compute_action_stream(walk, 0.95, 0.9, TruncationValue.OFF, one_step=True)
    np.testing.assert_array_equal(single.advantage, returns.advantage)
    np.testing.assert_allclose(
        single.target, np.array(REWARDS) + 0.95 * np.array((0.35, 0.4, 0.42, 0.5, 0.55, 0.8, 0.0))
    )
    high = hierarchical_gae.compute_subgoal_stream(walk, 0.95, 0.8, TruncationValue.OFF, one_step=True).target
    np.testing.assert_allclose(high[walk.starts_segment], (0.95**2 * 0.2 + 0.95**3 * 0.42, 0.95**2 * 0.55, 0.95))
    assert np.isnan(high[~walk.starts_segment]).all()


def test_rollouts_side_by_side_do_not_touch() -> None:
    both = build_turn_sequence(
        np.repeat([0, 1], 7),
        np.array(BEGINS * 2),
        np.array((*REWARDS, *(0.0,) * 7)),
        np.array(LOW * 2),
        np.array(HIGH * 2),
        np.repeat([False, True], 7),
    )
    for name, alone in (("first", a_walk()), ("second", a_walk(paid=(0.0,) * 7, cut=True))):
        half = slice(0, 7) if name == "first" else slice(7, 14)
        for at_truncation in (TruncationValue.OFF, TruncationValue.LAST_VALUE):
            np.testing.assert_array_equal(
                hierarchical_gae.compute_action_stream(both, 0.95, 0.9, at_truncation).advantage[half],
                hierarchical_gae.compute_action_stream(alone, 0.95, 0.9, at_truncation).advantage,
            )
            np.testing.assert_array_equal(
                hierarchical_gae.compute_subgoal_stream(both, 0.95, 0.8, at_truncation).advantage[half],
                hierarchical_gae.compute_subgoal_stream(alone, 0.95, 0.8, at_truncation).advantage,
            )
