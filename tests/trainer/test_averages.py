"""How much each token of a step counts, by each averaging rule."""

from typing import Any

import numpy as np
import pytest

from offing_trainer.batch import Floats, RolloutGroup
from tests.trainer.builders import (
    a_group,
    a_pipeline,
    a_recipe,
    a_sample,
    a_step,
    random_groups,
    rewarded,
    turns_of,
)

RULES = ["token-mean", "row-mean", "rollout-mean", "rollout-turn-token"]


def weights(
    name: str, *groups: RolloutGroup, by: str = "rollouts", minibatches: int = 1, **options: Any
) -> list[Floats]:
    pipeline = a_pipeline(token_weights={"name": name, **options})
    return list(a_step(pipeline, groups, minibatches=minibatches, minibatch_unit=by).token_weights)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("token-mean", {}, 3.6),
        ("row-sum", {}, 9.0),
        ("row-mean", {}, 3.25),
        ("row-sum", {"fixed_length": 3, "mean_over_rows": False}, 6.0),
    ],
)
def test_the_fixture_of_averages(name: str, options: dict[str, Any], expected: float) -> None:
    """Losses 1, 2 in a row of two tokens and 4, 5, 6 in one of three."""
    (weight,) = weights(name, rewarded([1.0, 0.0], [((2,),), ((3,),)]), **options)
    assert float(weight @ np.array([1, 2, 4, 5, 6])) == pytest.approx(expected)


def test_rollout_then_turn_then_token() -> None:
    """1 / (G T |a|) with two rollouts: one of turns of 1 and 3 tokens, one of a single turn of 2."""
    (weight,) = weights("rollout-turn-token", rewarded([1.0, 0.0], [((1, 3),), ((2,),)]))
    assert weight.tolist() == pytest.approx([1 / 4] + [1 / 12] * 3 + [1 / 4] * 2)


def test_groups_of_any_size_count_alike() -> None:
    groups = (rewarded([1.0, 0.0]), rewarded([1.0] * 3 + [0.0], key="g2", first=7))
    (weight,) = weights("rollout-turn-token", *groups)
    assert weight[:6].sum() == pytest.approx(0.5)
    assert weight[6:].sum() == pytest.approx(0.5)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("minibatches", [1, 3])
def test_shares_of_every_optimizer_step_sum_to_one(name: str, minibatches: int) -> None:
    for by in ("rollouts", "rows"):
        for weight in weights(name, *random_groups(4), by=by, minibatches=minibatches):
            assert weight.sum() == pytest.approx(1.0)
            assert (weight > 0).all()


@pytest.mark.parametrize("name", RULES)
def test_masked_rollouts_leave_the_denominator(name: str) -> None:
    long = a_sample(0.0, ((2,), (2,)), run=3, outcome="truncated")
    pipeline = a_recipe("supo", token_weights={"name": name})
    step = a_step(pipeline, [a_group(a_sample(1.0, run=1), a_sample(0.0, run=2), long)])
    assert step.token_weights[0].sum() == pytest.approx(1.0)


def test_a_group_whose_rollouts_are_all_masked_divides_by_nothing() -> None:
    cut = [a_sample(reward, run=run, outcome="truncated") for run, reward in ((1, 1.0), (2, 0.0))]
    step = a_step(a_recipe("supo"), [a_group(*cut)])
    assert (step.batch.num_rows, step.optimizer_steps, step.token_weights) == (0, (), ())


def test_each_rollout_counts_as_often_as_it_has_segments() -> None:
    (weight,) = weights("segment-sum", rewarded([1.0, 0.0], [((2,), (3,)), ((4,),)]))
    assert weight.tolist() == pytest.approx([1 / 4] * 2 + [1 / 6] * 3 + [1 / 8] * 4)


def test_a_step_makes_up_for_rollouts_that_other_steps_train() -> None:
    for weight in weights("segment-sum", rewarded([1.0, 0.0, 1.0, 0.0], [((2,), (3,))] * 4), minibatches=2):
        assert weight.sum() == pytest.approx(2.0)


def test_a_token_of_a_long_turn_counts_less_by_turn_and_the_same_by_token() -> None:
    group = rewarded([1.0, 0.0], turns_of(3, 1, length=4))
    by_turn, by_token = weights("rollout-turn-token", group)[0], weights("token-mean", group)[0]
    assert by_turn[0] == pytest.approx(by_turn[-1] / 3)
    assert by_token[0] == by_token[-1]
