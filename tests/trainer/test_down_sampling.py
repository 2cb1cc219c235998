"""What is left out or put in: D3S's rollouts and tokens, ARPO's replay."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from offing_trainer.batch import Floats, RolloutGroup, TrainingBatch, TrainingRollout, build_training_batch
from offing_trainer.plugin import REPLAY_TABLE, GroupSelectorInput, Rewards, RowSelectorInput, TokenWeightInput
from offing_trainer.selectors.max_variance import MaxVarianceOptions, max_variance, select_max_variance
from offing_trainer.selectors.success_replay import SuccessReplayOptions, success_replay
from offing_trainer.token_weights.top_tokens import TopTokensOptions, top_tokens
from tests.trainer.builders import a_group, a_sample, random_batch, rewarded, rounds_of


def chosen(batch: TrainingBatch, advantage: Floats, progress: float = 0.0, **how: Any) -> list[int]:
    rewards = Rewards(batch.reward, np.zeros(batch.num_turns))
    inputs = RowSelectorInput(batch, rewards, advantage, progress, {}, np.random.default_rng(0))
    return max_variance(MaxVarianceOptions(**how), inputs)[0].tolist()


def test_rollouts_at_both_ends_are_kept_with_all_their_rows() -> None:
    batch = build_training_batch([rewarded([0.0] * 5, rounds_of(1, 2, 1, 1, 1))])
    advantage = np.array([-2.0, 0.1, 0.0, -0.1, 3.0])[batch.token_rollout]
    assert chosen(batch, advantage, fraction=0.4) == [0, 5]
    assert chosen(batch, advantage, fraction=0.6) == [0, 4, 5]


def test_what_is_kept_varies_most_of_all_choices_of_its_size() -> None:
    rng = np.random.default_rng(4)
    for maximum in range(1, 7):
        values = rng.normal(size=7)
        stored = values[select_max_variance(values, np.argsort(values), maximum)]
        best = max(np.var([values[n] for n in choice]) for choice in combinations(range(7), maximum))
        assert np.var(stored) == pytest.approx(best)
        assert len(stored) == maximum
        if maximum > 1:
            assert np.var(stored) >= np.var(values) - 1e-12


def test_at_the_end_of_training_everything_is_trained() -> None:
    batch = random_batch(2)
    advantage = np.random.default_rng(1).normal(size=batch.num_tokens)
    assert len(chosen(batch, advantage)) < batch.num_rows
    assert chosen(batch, advantage, 1.0) == list(range(batch.num_rows))
    weight = top_tokens(TopTokensOptions(), TokenWeightInput(batch, advantage, {}, 1.0))
    assert weight.tolist() == [1.0] * batch.num_tokens


def test_tokens_with_much_advantage_and_entropy_carry_the_weight_of_all() -> None:
    batch = build_training_batch([a_group(a_sample(1.0, ((5,),), entropy=[1.0, 0.5, 0.0, 2.0, 0.5]))])
    advantage = np.array([0.1, -4.0, 9.0, 1.0, 4.0])
    weight = top_tokens(TopTokensOptions(fraction=0.4), TokenWeightInput(batch, advantage, {}, 0.0))
    np.testing.assert_allclose(weight, np.array([0, 1, 0, 1, 1]) * 5 / 3)
    half = top_tokens(TopTokensOptions(fraction=0.2), TokenWeightInput(batch, advantage, {}, 0.5))
    np.testing.assert_allclose(half, weight)


def replayed(
    groups: list[RolloutGroup], state: Any, earlier: dict[str, TrainingRollout], seed: int = 0, **how: Any
) -> tuple[Any, Any]:
    inputs = GroupSelectorInput(groups, state, np.random.default_rng(seed), earlier)
    result, changed = success_replay(SuccessReplayOptions(**how), inputs)
    return result, changed[REPLAY_TABLE]


def name(sample: TrainingRollout) -> str:
    return str(sample.metadata.run_id)


OLD = a_sample(1.0, ((4,),), run=77, policy="planner@0", turns={"policy": ("planner@0",)})
TABLE = {REPLAY_TABLE: {"task of g1": [name(OLD)]}}


def test_a_group_that_failed_as_a_whole_gets_one_earlier_success_that_keeps_its_own_policy_and_tokens() -> None:
    group = rewarded([0.0, 0.0, 0.0, 0.0])
    (helped,), table = replayed([group], TABLE, {name(OLD): OLD})
    put_in = [sample for sample in helped.rollouts if sample.replayed]
    assert len(put_in) == 1
    assert len(helped.rollouts) == 4
    assert put_in[0].rows == OLD.rows
    assert table == TABLE[REPLAY_TABLE]
    batch = build_training_batch([helped])
    assert sorted(batch.policy_versions) == ["planner@0", "planner@1", "planner@1", "planner@1"]
    assert batch.replayed.sum() == 1


@pytest.mark.parametrize("rewards", [[1.0, 0.0, 0.0, 0.0], [1.0] * 4, [0.5] * 4])
def test_a_group_with_any_success_is_left_alone(rewards: list[float]) -> None:
    (helped,), _ = replayed([rewarded(rewards)], TABLE, {name(OLD): OLD})
    assert helped is not None
    assert not any(sample.replayed for sample in helped.rollouts)


def test_nothing_is_passed_where_nothing_is_stored_or_the_text_was_deleted() -> None:
    for state, earlier in (({}, {}), (TABLE, {}), ({REPLAY_TABLE: {"another": [name(OLD)]}}, {name(OLD): OLD})):
        (helped,), _ = replayed([rewarded([0.0, 0.0])], state, earlier)
        assert not any(sample.replayed for sample in helped.rollouts)


def test_successes_are_remembered_by_task_and_the_oldest_forgotten_first() -> None:
    groups = [rewarded([1.0, 0.0, 1.0]), rewarded([0.0, 0.3], key="g2", first=11)]
    _, table = replayed(groups, TABLE, {}, max_successes_per_task=2)
    runs = [name(sample) for sample in groups[0].rollouts]
    assert table == {"task of g1": [runs[0], runs[2]], "task of g2": [name(groups[1].rollouts[1])]}


def test_the_same_seed_puts_the_same_success_in_the_same_place() -> None:
    group = rewarded([0.0] * 6)
    other = a_sample(1.0, run=78)
    state, earlier = {REPLAY_TABLE: {"task of g1": [name(OLD), name(other)]}}, {name(OLD): OLD, name(other): other}

    def runs(seed: int) -> list[str]:
        return [name(sample) for sample in replayed([group], state, earlier, seed)[0][0].rollouts]

    assert runs(5) == runs(5)
    assert len({tuple(runs(seed)) for seed in range(20)}) > 5
