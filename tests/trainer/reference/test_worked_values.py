"""The references themselves, against values that were worked out or run with the authors' code."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.trainer.builders import Segments, a_group, a_sample, rewarded, rounds_of
from tests.trainer.reference import advantages as by
from tests.trainer.reference.hierarchy import Setting, hierarchical
from tests.trainer.reference.losses import balanced_bounds, clipped
from tests.trainer.reference.records import Rollout, mean, records_of

OPENS, GOES_ON = ("switch", "subgoal", "action"), ("switch", "kept", "action")
WALK = (OPENS, GOES_ON, GOES_ON, OPENS, GOES_ON, OPENS, GOES_ON)
LOW = (0.30, 0.35, 0.40, 0.45, 0.50, 0.60, 0.80)
HIGH = (0.25, 0.0, 0.0, 0.42, 0.0, 0.55, 0.0)
TERM = (0.26, 0.31, 0.36, 0.41, 0.46, 0.51, 0.56)


def a_walk(paid: Sequence[float], setting: Setting, outcome: str = "answered") -> dict[str, list[float]]:
    """Credit of action, subgoal and switch tokens, turn by turn."""
    group = a_group(a_sample(1.0, [[3] * 7], kinds=WALK, outcome=outcome))
    rollouts = records_of([group])
    keys = [turn.key for turn in rollouts[0].turns]
    values = {"value_low": LOW, "value_high": HIGH, "value_switch": TERM}
    messages = {head: dict(zip(keys, of, strict=True)) for head, of in values.items()}
    advantages = hierarchical(rollouts, dict(zip(keys, paid, strict=True)), messages, setting)
    tokens = list(zip(rollouts[0].rows[0].tokens, next(iter(advantages.values())), strict=True))
    return {kind: [value for token, value in tokens if token.kind == kind] for kind in ("action", "subgoal", "switch")}


FADING = Setting(gamma=0.95, turn=0.9, segment=0.8, standardize=False)
REWARDS = (0, 0, 0.2, 0, 0, 0, 1)


def test_two_levels() -> None:
    result = a_walk(REWARDS, FADING)
    assert result["action"] == pytest.approx([0.203624, 0.200145, 0.199, 0.044237, 0.0225, 0.331, 0.2], abs=1e-6)
    assert result["subgoal"] == pytest.approx([0.541071, 0.365175, 0.4], abs=1e-6)
    assert result["switch"] == pytest.approx([0.280597, 0.25905, 0.239, 0.086375, 0.0625, 0.44, 0.44], abs=1e-6)
    result = a_walk(REWARDS, Setting(standardize=False))
    assert result["action"] == pytest.approx([0.32, 0.27, 0.22, 0.1, 0.05, 0.4, 0.2])
    assert result["subgoal"] == pytest.approx([0.899625, 0.5575, 0.45])
    assert result["switch"] == pytest.approx([0.36, 0.31, 0.26, 0.14, 0.09, 0.49, 0.44])


def test_two_levels_cut_off() -> None:
    result = a_walk((0,) * 7, FADING, "truncated")
    low = [0.057419, 0.029145, -0.001, 0.044237, 0.0225, -0.524, -0.8]
    assert result["action"] == pytest.approx(low, abs=1e-6)
    assert result["subgoal"] == pytest.approx([-0.109888, -0.320725, -0.55], abs=1e-6)
    how = Setting(gamma=0.95, turn=0.9, segment=0.8, standardize=False, at_truncation="last-value")
    result = a_walk((0,) * 7, how, "truncated")
    assert result["action"] == pytest.approx([*low[:5], 0.1258, -0.04], abs=1e-6)
    assert result["subgoal"] == pytest.approx([0.135927, 0.037658, -0.053625], abs=1e-6)


@pytest.mark.parametrize(
    ("lengths", "rewards", "ddof", "means"),
    [
        ((5, 20, 10, 32), (1, 1, 0, 0), 0, (1.35740, 1.27968, -0.77096, -0.77096)),
        ((5, 20, 10, 32), (1, 1, 0, 0), 1, (1.34723, 1.27009, -0.76519, -0.76519)),
        ((5, 20), (1, 1), 0, (1.00573, -0.25143)),
    ],
)
def test_rounds(lengths: Any, rewards: Any, ddof: int, means: Any) -> None:
    rollouts = records_of([rewarded(rewards, rounds_of(*lengths))])
    advantages = by.over_turns(rollouts, by.discounted_outcome(rollouts, 0.995), ddof)
    results = [mean([advantages[turn.key] for turn in rollout.turns]) for rollout in rollouts]
    assert results == pytest.approx(means, abs=1e-5)


def _first(rollouts: Sequence[Rollout], advantages: by.PerTurn) -> list[float]:
    return [advantages[rollout.turns[0].key] for rollout in rollouts]


def test_rollouts() -> None:
    shapes: list[Segments] = [((1,), (2,), (3,)), ((1,),), ((2,), (2,))]
    rollouts = records_of([rewarded((1.0, 0.0, -0.1), shapes)])
    advantages = by.over_rollouts(rollouts, {rollout.run: rollout.reward for rollout in rollouts})
    assert _first(rollouts, advantages) == pytest.approx([1.150791, -0.493196, -0.657595], abs=1e-6)
    rollouts = records_of([rewarded((1.0, 0.0, -0.1, 1.0, 0.0))])
    advantages = by.over_rollouts(rollouts, {rollout.run: rollout.reward for rollout in rollouts})
    assert _first(rollouts, advantages) == pytest.approx(
        [1.092604, -0.669661, -0.845887, 1.092604, -0.669661], abs=1e-6
    )


def test_uncertainty() -> None:
    sure = a_sample(1.0, ((1, 1),), entropy=[0.2, 1.0])
    unsure = a_sample(0.0, ((1, 1),), run=2, entropy=[0.6, 0.2])
    rollouts = records_of([a_group(sure, unsure)])
    plain = {turn.key: 1.0 if rollout.reward else -1.0 for rollout in rollouts for turn in rollout.turns}
    result = by.modulated(rollouts, plain, k=1, k_next=1, zeta=0.1)
    assert list(result.values()) == pytest.approx([1.4276, 0.5408, -0.6696, -1.2988], abs=1e-4)


def test_tool_calls() -> None:
    results = [by.tool_efficiency(cost, 3) for cost in (1, 2, 3, 4, 6, 12)]
    assert results == pytest.approx([0.7071, 0.9511, 1, 0.9749, 0.8660, 0.5878], abs=1e-4)
    assert by.tool_efficiency(0, 0) == 1


def test_a_tracked_success() -> None:
    tracker = by.SuccessTracker()
    tracker.remember("t", [1.0], 2**-0.5)
    assert tracker.known["t"] == pytest.approx((3.828427, 2.828427), abs=1e-6)


def test_clips() -> None:
    assert clipped(1.5, 1.0, 0.8, 1.2) == 1.2
    assert clipped(0.5, 1.0, 0.8, 1.2) == 0.5
    assert clipped(0.5, -1.0, 0.8, 1.2) == -0.8
    assert clipped(5.0, -1.0, 0.8, 1.2, 3.0) == -3.0
    assert balanced_bounds((), {}, {}, {}) == pytest.approx((0.9, 3.0))
