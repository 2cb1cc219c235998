"""Which groups and rows are trained, and how often."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing_trainer.batch import Indices, RolloutGroup, build_training_batch
from offing_trainer.plugin import Rewards, RowSelectorInput
from offing_trainer.selectors.rows import DpMultipleOptions, InformedOptions, dp_multiple, informed
from offing_trainer.selectors.segment_sample import SegmentSampleOptions, segment_sample
from tests.trainer.builders import a_group, a_pipeline, a_sample, a_step, random_groups, rewarded, rounds_of, seen_by


def row_input(*groups: RolloutGroup, seed: int = 0, advantage: float = 1.0) -> RowSelectorInput:
    batch = build_training_batch(groups)
    rewards = Rewards(batch.reward, np.zeros(batch.num_turns))
    return RowSelectorInput(batch, rewards, np.full(batch.num_tokens, advantage), 0.0, {}, np.random.default_rng(seed))


def sampled(count: int, *groups: RolloutGroup, seed: int = 0) -> Indices:
    return segment_sample(SegmentSampleOptions(rows_per_group=count), row_input(*groups, seed=seed))[0]


# Multiples of the ranks --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 7), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_rows_are_cut_to_a_multiple_and_none_is_there_twice(rounds: list[int], size: int, seed: int) -> None:
    what = row_input(rewarded([1.0] * len(rounds), rounds_of(*rounds)), seed=seed)
    stored, _ = dp_multiple(DpMultipleOptions(multiple=size), what)
    assert len(stored) == sum(rounds) // size * size
    assert len(set(stored.tolist())) == len(stored)
    assert set(stored.tolist()) <= set(range(sum(rounds)))


def test_each_row_is_as_likely_to_be_dropped() -> None:
    what, draws = row_input(rewarded([1.0, 0.0], rounds_of(2, 5))), 2_000
    stored = np.concatenate([dp_multiple(DpMultipleOptions(multiple=5), what)[0] for _ in range(draws)])
    dropped = draws - np.bincount(stored, minlength=7)
    expected = draws * 2 / 7
    square = sum((dropped[row] - expected) ** 2 / expected for row in range(7))
    assert square < 22.5  # chi-square, 6 degrees of freedom, p = 0.001


def test_the_same_seed_keeps_the_same_rows() -> None:
    group = rewarded([1.0, 0.0], rounds_of(9, 8))
    one, other, third = (
        dp_multiple(DpMultipleOptions(multiple=4), row_input(group, seed=s))[0].tolist() for s in (1, 1, 2)
    )
    assert one == other != third


def test_a_multiple_may_be_cut_group_by_group() -> None:
    groups = (rewarded([1.0], rounds_of(5)), rewarded([1.0], rounds_of(3), key="g2", first=3))
    stored, _ = dp_multiple(DpMultipleOptions(multiple=4, unit="group"), row_input(*groups))
    assert Counter((stored < 5).tolist()) == {True: 4}


def test_fewer_rows_than_ranks_are_an_empty_step() -> None:
    pipeline = a_pipeline(selectors={"name": "dp-multiple", "multiple": 8})
    step = a_step(pipeline, [rewarded([1.0, 0.0])])
    assert (step.batch.num_rows, step.optimizer_steps, step.token_weights, step.list_active_rows) == (0, (), (), ())
    assert set(step.ledger_reasons.values()) == {"unselected"}


# Segments ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, 500), st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_exactly_the_given_number_of_rows_of_every_group(seed: int, count: int) -> None:
    groups = random_groups(seed, groups=3, rollouts=5)
    what = row_input(*groups)
    chosen = sampled(count, *groups, seed=seed)
    group = what.batch.rollout_group[what.batch.row_rollout]
    assert Counter(group[chosen].tolist()) == dict.fromkeys(range(3), count)
    for nth in range(3):
        mine, distinct = chosen[group[chosen] == nth], int((group == nth).sum())
        assert len(set(mine.tolist())) == min(count, distinct)
        covered = set(what.batch.row_rollout[mine].tolist())
        assert len(covered) == min(count, 5)


def test_rows_repeat_only_when_there_are_no_others() -> None:
    group = rewarded([1.0, 0.0], [((2,),) * 3, ((2,),)])
    assert sorted(np.bincount(sampled(10, group)).tolist()) == [2, 2, 3, 3]


def test_with_more_rollouts_than_rows_each_gives_at_most_one() -> None:
    group = rewarded([1.0] * 6, [((2,),) * 3] * 6)
    rollouts = {int(row) // 3 for row in sampled(4, group)}
    assert len(rollouts) == 4


def test_any_segment_of_any_rollout_may_be_the_one() -> None:
    group = rewarded([1.0, 0.0], [((2,),) * 3] * 2)
    drawn = Counter(int(sampled(1, group, seed=seed)[0]) for seed in range(300))
    assert set(drawn) == set(range(6))
    assert min(drawn.values()) > 25


def test_a_row_that_is_trained_twice_is_there_twice() -> None:
    pipeline = a_pipeline(selectors={"name": "segment-sample", "rows_per_group": 4}, token_weights={"name": "row-mean"})
    step = a_step(pipeline, [rewarded([1.0, 0.0])])
    assert step.batch.num_rows == len(step.rows) == 4
    assert step.token_weights[0].tolist() == pytest.approx([1 / 12] * 12)


# Groups and credit ------------------------------------------------------------------------------------------------


def test_groups_whose_rewards_are_the_same_are_left_out_when_asked() -> None:
    groups = [rewarded([1.0, 1.0]), rewarded([1.0, 0.0], key="g2", first=5)]
    seen = seen_by(a_pipeline(selectors={"name": "informative"}), groups)
    assert seen.batch.group_keys == ("g2",)
    assert sorted(seen.ledger_reasons.values()) == ["unselected"] * 2


def test_imitation_keeps_successes_up_to_a_maximum() -> None:
    pipeline = a_pipeline(selectors={"name": "successes", "min_reward": 0.5, "max_rollouts": 2})
    groups = [rewarded([1.0, 0.0, 0.5, 0.9]), rewarded([0.0], key="g2", first=9)]
    seen = seen_by(pipeline, groups)
    assert seen.batch.num_groups == 1
    assert len(seen.batch.reward) == 2
    assert (seen.batch.reward >= 0.5).all()


def test_statistics_may_be_over_some_of_the_rollouts() -> None:
    seen = seen_by(
        a_pipeline(selectors={"name": "rollout-sample", "max_rollouts": 3}), [rewarded([1.0, 0.0] * 3), rewarded([0.0])]
    )
    assert np.bincount(seen.batch.rollout_group).tolist() == [3, 1]
    assert "unselected" in seen.ledger_reasons.values()


def test_rows_without_advantages_may_leave_the_averages_too() -> None:
    what = row_input(rewarded([1.0, 0.0]), advantage=0.0)
    what.advantage[what.batch.token_row == 1] = -2
    assert informed(InformedOptions(), what)[0].tolist() == [1]


def test_selections_see_what_those_before_them_left() -> None:
    cut = a_sample(0.0, rounds_of(3)[0], run=3, outcome="truncated")
    pipeline = a_pipeline(selectors=[{"name": "overlong"}, {"name": "segment-sample", "rows_per_group": 5}])
    step = a_step(pipeline, [a_group(cut, a_sample(1.0, run=1), a_sample(0.0, run=2))])
    assert step.batch.num_rows == 5
    assert set(step.batch.row_rollout.tolist()) == {1, 2}
