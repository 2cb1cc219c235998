"""Where everything is known, hierarchical credit is the gradient of the return, and varies less than flat credit."""

import numpy as np
import pytest

from offing_trainer.batch import Floats
from offing_trainer.critic import compute_value_loss
from tests.results.key_door import How, episodes_until
from tests.results.two_levels import Measured, a_world, compared, exact_gradient, values

EPISODES, SEED = 20_000, 5


def by_block(results: list[Measured], advantages: str) -> dict[str, Measured]:
    return {one.block: one for one in results if one.credit == advantages}


@pytest.fixture(scope="module")
def whole() -> list[Measured]:
    return compared(EPISODES, SEED, (1.0, 1.0))


def test_every_advantage_estimator_estimates_the_exact_gradient(whole: list[Measured]) -> None:
    assert max(one.farthest for one in whole) < 3


def test_hierarchical_advantages_vary_less_in_total_at_actions_and_at_switches(whole: list[Measured]) -> None:
    flat, ours, paper = (by_block(whole, name) for name in ("flat", "hierarchical", "paper"))
    assert ours["action"].variance < 0.9 * flat["action"].variance
    assert ours["switch"].variance < 0.9 * flat["switch"].variance
    assert paper["switch"].variance < 0.2 * ours["switch"].variance
    assert ours["subgoal"].variance <= 1.02 * flat["subgoal"].variance
    total = {name: sum(one.variance for one in blocks.values()) for name, blocks in (("f", flat), ("h", ours))}
    assert total["h"] < 0.9 * total["f"]


def test_with_lambdas_below_one_advantages_of_subgoals_can_vary_more_because_they_fade_once_per_segment() -> None:
    result = compared(EPISODES, SEED, (0.9, 0.8))
    assert by_block(result, "hierarchical")["subgoal"].variance > by_block(result, "flat")["subgoal"].variance


def test_a_critic_that_is_wrong_at_boundaries_is_a_bias_for_hierarchical_advantage_alone() -> None:
    result = compared(EPISODES, SEED, (1.0, 1.0), wrong=1.0)
    assert max(one.farthest for one in by_block(result, "flat").values()) < 3
    assert by_block(result, "hierarchical")["action"].farthest > 4


def test_the_worlds_values_agree_with_each_other_and_its_gradient_with_them() -> None:
    world = a_world(SEED)
    known = values(world)
    np.testing.assert_array_equal(known.low[-1], 0)
    assert (known.before <= np.maximum(known.high[..., None], known.low) + 1e-12).all()
    gradient = exact_gradient(world)
    np.testing.assert_allclose(gradient["subgoal"].reshape(3, 3).sum(1), 0, atol=1e-8)
    np.testing.assert_allclose(gradient["action"].reshape(9, 2).sum(1), 0, atol=1e-8)


def test_with_small_steps_hierarchical_advantages_solve_the_corridor_in_fewer_episodes() -> None:
    results = {
        advantages: [episodes_until(seed, How(advantages)) for seed in range(5)]
        for advantages in ("flat", "hierarchical")
    }
    assert max(results["hierarchical"]) < 6400
    assert np.mean(results["hierarchical"]) < np.mean(results["flat"])


def test_three_heads_learn_what_they_are_told() -> None:
    rng = np.random.default_rng(0)
    heads = ("value_high", "value_low", "value_switch")
    targets = {head: rng.normal(size=30) for head in heads}
    values: dict[str, Floats] = {head: np.zeros(30) for head in heads}
    for _ in range(60):
        before = values
        for _ in range(4):
            pull = compute_value_loss(values, targets, before, turn_weight=1.0, clip=0.5).value_grads
            values = {head: values[head] - 0.3 * pull[head] for head in heads}
    assert compute_value_loss(values, targets, values, turn_weight=1 / 30).value < 1e-3
