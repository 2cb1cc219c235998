"""What is left out or put in: D3S's rollouts and tokens, ARPO's replay."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from offing_trainer.batch import Batch, Floats, Group, Sample, batch_of
from offing_trainer.seam import REPLAY, GroupsGiven, Rewards, RowsGiven, WeightGiven
from offing_trainer.selections.max_variance import MaxVariance, max_variance, widest
from offing_trainer.selections.success_replay import SuccessReplay, success_replay
from offing_trainer.weights.top_tokens import TopTokens, top_tokens
from tests.trainer.builders import a_group, a_sample, random_batch, rewarded, rounds_of


def chosen(batch: Batch, advantage: Floats, progress: float = 0.0, **how: Any) -> list[int]:
    rewards = Rewards(batch.reward, np.zeros(batch.turns))
    given = RowsGiven(batch, rewards, advantage, progress, {}, np.random.default_rng(0))
    return max_variance(MaxVariance(**how), given)[0].tolist()


def test_rollouts_at_both_ends_are_kept_with_all_their_rows() -> None:
    batch = batch_of([rewarded([0.0] * 5, rounds_of(1, 2, 1, 1, 1))])
    advantage = np.array([-2.0, 0.1, 0.0, -0.1, 3.0])[batch.token_rollout]
    assert chosen(batch, advantage, share=0.4) == [0, 5]
    assert chosen(batch, advantage, share=0.6) == [0, 4, 5]


def test_what_is_kept_varies_most_of_all_choices_of_its_size() -> None:
    rng = np.random.default_rng(4)
    for most in range(1, 7):
        values = rng.normal(size=7)
        kept = values[widest(values, np.argsort(values), most)]
        best = max(np.var([values[n] for n in choice]) for choice in combinations(range(7), most))
        assert np.var(kept) == pytest.approx(best)
        assert len(kept) == most
        if most > 1:
            assert np.var(kept) >= np.var(values) - 1e-12


def test_at_the_end_of_training_everything_is_trained() -> None:
    batch = random_batch(2)
    advantage = np.random.default_rng(1).normal(size=batch.tokens)
    assert len(chosen(batch, advantage)) < batch.rows
    assert chosen(batch, advantage, 1.0) == list(range(batch.rows))
    weight = top_tokens(TopTokens(), WeightGiven(batch, advantage, {}, 1.0))
    assert weight.tolist() == [1.0] * batch.tokens


def test_tokens_with_much_advantage_and_entropy_carry_the_weight_of_all() -> None:
    batch = batch_of([a_group(a_sample(1.0, ((5,),), entropy=[1.0, 0.5, 0.0, 2.0, 0.5]))])
    advantage = np.array([0.1, -4.0, 9.0, 1.0, 4.0])
    weight = top_tokens(TopTokens(share=0.4), WeightGiven(batch, advantage, {}, 0.0))
    np.testing.assert_allclose(weight, np.array([0, 1, 0, 1, 1]) * 5 / 3)
    half = top_tokens(TopTokens(share=0.2), WeightGiven(batch, advantage, {}, 0.5))
    np.testing.assert_allclose(half, weight)


def replayed(groups: list[Group], state: Any, earlier: dict[str, Sample], seed: int = 0, **how: Any) -> tuple[Any, Any]:
    given = GroupsGiven(groups, state, np.random.default_rng(seed), earlier)
    found, changed = success_replay(SuccessReplay(**how), given)
    return found, changed[REPLAY]


def name(sample: Sample) -> str:
    return str(sample.episode.run)


OLD = a_sample(1.0, ((4,),), run=77, policy="planner@0", turns={"policy": ("planner@0",)})
TABLE = {REPLAY: {"task of g1": [name(OLD)]}}


def test_a_group_that_failed_as_a_whole_gets_one_earlier_success_that_keeps_its_own_policy_and_tokens() -> None:
    group = rewarded([0.0, 0.0, 0.0, 0.0])
    (helped,), table = replayed([group], TABLE, {name(OLD): OLD})
    put_in = [sample for sample in helped.samples if sample.replayed]
    assert len(put_in) == 1
    assert len(helped.samples) == 4
    assert put_in[0].rows == OLD.rows
    assert table == TABLE[REPLAY]
    batch = batch_of([helped])
    assert sorted(batch.policy) == ["planner@0", "planner@1", "planner@1", "planner@1"]
    assert batch.replayed.sum() == 1


@pytest.mark.parametrize("rewards", [[1.0, 0.0, 0.0, 0.0], [1.0] * 4, [0.5] * 4])
def test_a_group_with_any_success_is_left_alone(rewards: list[float]) -> None:
    (helped,), _ = replayed([rewarded(rewards)], TABLE, {name(OLD): OLD})
    assert helped is not None
    assert not any(sample.replayed for sample in helped.samples)


def test_nothing_is_put_in_where_nothing_is_stored_or_what_was_is_gone() -> None:
    for state, earlier in (({}, {}), (TABLE, {}), ({REPLAY: {"another": [name(OLD)]}}, {name(OLD): OLD})):
        (helped,), _ = replayed([rewarded([0.0, 0.0])], state, earlier)
        assert not any(sample.replayed for sample in helped.samples)


def test_successes_are_remembered_by_task_and_the_oldest_forgotten_first() -> None:
    groups = [rewarded([1.0, 0.0, 1.0]), rewarded([0.0, 0.3], key="g2", first=11)]
    _, table = replayed(groups, TABLE, {}, size=2)
    runs = [name(sample) for sample in groups[0].samples]
    assert table == {"task of g1": [runs[0], runs[2]], "task of g2": [name(groups[1].samples[1])]}


def test_the_same_seed_puts_the_same_success_in_the_same_place() -> None:
    group = rewarded([0.0] * 6)
    other = a_sample(1.0, run=78)
    state, earlier = {REPLAY: {"task of g1": [name(OLD), name(other)]}}, {name(OLD): OLD, name(other): other}

    def runs(seed: int) -> list[str]:
        return [name(sample) for sample in replayed([group], state, earlier, seed)[0][0].samples]

    assert runs(5) == runs(5)
    assert len({tuple(runs(seed)) for seed in range(20)}) > 5
