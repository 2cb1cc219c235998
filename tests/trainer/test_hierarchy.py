"""Credit in two levels against worked values and its limits."""

from typing import Any

import numpy as np
import pytest

from offing_trainer import hierarchy
from offing_trainer.hierarchy import AtCut, Walk, walk_of
from offing_trainer.turns import backward

LOW = (0.30, 0.35, 0.40, 0.45, 0.50, 0.60, 0.80)
HIGH = (0.25, np.nan, np.nan, 0.42, np.nan, 0.55, np.nan)
TERM = np.array((0.26, 0.31, 0.36, 0.41, 0.46, 0.51, 0.56))
PAID = (0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0)
BEGINS = (True, False, False, True, False, True, False)
DISCOUNTED, PLAIN = (0.95, 0.9, 0.8), (1.0, 1.0, 0.95)


def a_walk(
    paid: tuple[float, ...] = PAID, begins: tuple[bool, ...] = BEGINS, *, cut: bool = False, **more: Any
) -> Walk:
    values = {"low": LOW, "high": HIGH} | more
    return walk_of(
        np.zeros(7, np.int64),
        np.array(begins),
        np.array(paid),
        np.array(values["low"]),
        np.array(values["high"]),
        np.full(7, cut),
        None if "after" not in more else np.array(more["after"]),
    )


def streams(walk: Walk, how: tuple[float, float, float], at_cut: AtCut = AtCut.OFF) -> tuple[Any, Any, Any]:
    gamma, lam_turn, lam_segment = how
    low = hierarchy.low_stream(walk, gamma, lam_turn, at_cut).advantage
    high = hierarchy.high_stream(walk, gamma, lam_segment, at_cut).advantage[walk.begins]
    return low, high, hierarchy.switch_stream(walk, gamma, at_cut, TERM).advantage


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
    found = streams(a_walk(), how)
    for stream, expected in zip(found, (low, high, switch), strict=True):
        np.testing.assert_allclose(stream, expected, atol=1e-6)


def test_the_streams_of_a_cut_rollout_are_the_worked_ones() -> None:
    walk = a_walk(paid=(0.0,) * 7, cut=True)
    low, high, _ = streams(walk, DISCOUNTED)
    np.testing.assert_allclose(low, (0.057419, 0.029145, -0.001, 0.044237, 0.0225, -0.524, -0.8), atol=1e-6)
    np.testing.assert_allclose(high, (-0.109888, -0.320725, -0.55), atol=1e-6)
    low, high, _ = streams(walk, DISCOUNTED, AtCut.COMPAT)
    np.testing.assert_allclose(low, (0.057419, 0.029145, -0.001, 0.044237, 0.0225, 0.1258, -0.04), atol=1e-6)
    np.testing.assert_allclose(high, (0.135927, 0.037658, -0.053625), atol=1e-6)


def test_a_rollout_that_ended_is_never_given_a_future() -> None:
    for ours, plain in zip(
        streams(a_walk(), DISCOUNTED, AtCut.COMPAT), streams(a_walk(), DISCOUNTED, AtCut.OFF), strict=True
    ):
        np.testing.assert_array_equal(ours, plain)


def test_the_value_after_the_last_observation_ends_a_cut_rollout() -> None:
    walk = a_walk(paid=(0.0,) * 7, cut=True, after=(0.9,) * 7)
    low, high, switch = streams(walk, DISCOUNTED, AtCut.NEXT_VALUE)
    assert low[-1] == pytest.approx(0.95 * 0.9 - 0.80)
    assert high[-1] == pytest.approx(0.95**2 * 0.9 - 0.55)
    assert switch[-1] == pytest.approx(0.95 * 0.9 - 0.56)


def gae(values: Any, how: tuple[float, float]) -> Any:
    gamma, lam = how
    surprise = np.array(PAID) + gamma * np.append(values[1:], 0.0) - values
    return backward(surprise, np.full(7, gamma * lam), np.zeros(7))


def test_where_every_turn_keeps_the_low_stream_is_turn_gae() -> None:
    low, _, _ = streams(a_walk(begins=(False,) * 7), DISCOUNTED)
    np.testing.assert_array_equal(low, gae(np.array(LOW), (0.95, 0.9)))


def test_where_every_turn_switches_the_high_stream_is_turn_gae_and_the_low_one_a_single_step() -> None:
    high = np.array(LOW) - 0.1
    walk = a_walk(begins=(True,) * 7, high=high)
    low, found, _ = streams(walk, DISCOUNTED)
    np.testing.assert_allclose(found, gae(high, (0.95, 0.8)), atol=1e-15)
    np.testing.assert_allclose(low, np.array(PAID) + 0.95 * np.append(high[1:], 0.0) - LOW, atol=1e-15)
    np.testing.assert_array_equal(low, hierarchy.low_stream(walk, 0.95, 0.1, AtCut.OFF).advantage)


def test_a_reward_in_a_later_segment_reaches_earlier_ones_through_the_high_stream_alone() -> None:
    gamma, lam = 0.95, 0.8
    before, after = streams(a_walk(), DISCOUNTED), streams(a_walk(paid=(*PAID[:6], 2.0)), DISCOUNTED)
    np.testing.assert_array_equal(after[0][:5], before[0][:5])
    step = gamma * 1.0
    carried = [gamma**5 * lam**2 * step, gamma**2 * lam * step, step]
    np.testing.assert_allclose(after[1] - before[1], carried, atol=1e-12)


def test_the_papers_form_credits_a_switch_by_what_a_new_subgoal_is_worth() -> None:
    high = np.array((0.25, 0.3, 0.35, 0.42, 0.5, 0.55, 0.6))
    kept, chance = np.array((0.0, 0.35, 0.40, 0.30, 0.50, 0.50, 0.80)), np.full(7, 0.25)
    found = hierarchy.chosen_stream(a_walk(high=high), kept, chance).advantage
    expected = (0.0, -0.25 * -0.05, -0.25 * -0.05, 0.75 * 0.12, 0.0, 0.75 * 0.05, -0.25 * -0.2)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_targets_are_lambda_returns_or_one_step() -> None:
    walk = a_walk()
    returns = hierarchy.low_stream(walk, 0.95, 0.9, AtCut.OFF)
    np.testing.assert_allclose(returns.target, returns.advantage + LOW)
    single = hierarchy.low_stream(walk, 0.95, 0.9, AtCut.OFF, one_step=True)
    np.testing.assert_array_equal(single.advantage, returns.advantage)
    np.testing.assert_allclose(single.target, np.array(PAID) + 0.95 * np.array((0.35, 0.4, 0.42, 0.5, 0.55, 0.8, 0.0)))
    high = hierarchy.high_stream(walk, 0.95, 0.8, AtCut.OFF, one_step=True).target
    np.testing.assert_allclose(high[walk.begins], (0.95**2 * 0.2 + 0.95**3 * 0.42, 0.95**2 * 0.55, 0.95))
    assert np.isnan(high[~walk.begins]).all()


def test_rollouts_side_by_side_do_not_touch() -> None:
    both = walk_of(
        np.repeat([0, 1], 7),
        np.array(BEGINS * 2),
        np.array((*PAID, *(0.0,) * 7)),
        np.array(LOW * 2),
        np.array(HIGH * 2),
        np.repeat([False, True], 7),
    )
    for name, alone in (("first", a_walk()), ("second", a_walk(paid=(0.0,) * 7, cut=True))):
        half = slice(0, 7) if name == "first" else slice(7, 14)
        for at_cut in (AtCut.OFF, AtCut.COMPAT):
            np.testing.assert_array_equal(
                hierarchy.low_stream(both, 0.95, 0.9, at_cut).advantage[half],
                hierarchy.low_stream(alone, 0.95, 0.9, at_cut).advantage,
            )
            np.testing.assert_array_equal(
                hierarchy.high_stream(both, 0.95, 0.8, at_cut).advantage[half],
                hierarchy.high_stream(alone, 0.95, 0.8, at_cut).advantage,
            )
