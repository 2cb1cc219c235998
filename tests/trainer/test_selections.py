"""Which groups and rows are trained, and how often."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing_trainer.batch import Group, Places, batch_of
from offing_trainer.seam import Rewards, RowsGiven
from offing_trainer.selections.rows import DpMultiple, Informed, dp_multiple, informed
from offing_trainer.selections.segment_sample import SegmentSample, segment_sample
from tests.trainer.builders import a_chain, a_group, a_sample, a_step, random_groups, rewarded, rounds_of, seen_by


def rows_given(*groups: Group, seed: int = 0, advantage: float = 1.0) -> RowsGiven:
    batch = batch_of(groups)
    rewards = Rewards(batch.reward, np.zeros(batch.turns))
    return RowsGiven(batch, rewards, np.full(batch.tokens, advantage), 0.0, {}, np.random.default_rng(seed))


def sampled(count: int, *groups: Group, seed: int = 0) -> Places:
    return segment_sample(SegmentSample(count=count), rows_given(*groups, seed=seed))[0]


# Multiples of the ranks --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 7), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_rows_are_cut_to_a_multiple_and_none_is_there_twice(rounds: list[int], size: int, seed: int) -> None:
    what = rows_given(rewarded([1.0] * len(rounds), rounds_of(*rounds)), seed=seed)
    kept, _ = dp_multiple(DpMultiple(size=size), what)
    assert len(kept) == sum(rounds) // size * size
    assert len(set(kept.tolist())) == len(kept)
    assert set(kept.tolist()) <= set(range(sum(rounds)))


def test_each_row_is_as_likely_to_be_dropped() -> None:
    what, draws = rows_given(rewarded([1.0, 0.0], rounds_of(2, 5))), 2_000
    kept = np.concatenate([dp_multiple(DpMultiple(size=5), what)[0] for _ in range(draws)])
    dropped = draws - np.bincount(kept, minlength=7)
    expected = draws * 2 / 7
    square = sum((dropped[row] - expected) ** 2 / expected for row in range(7))
    assert square < 22.5  # chi-square, 6 degrees of freedom, p = 0.001


def test_the_same_seed_keeps_the_same_rows() -> None:
    group = rewarded([1.0, 0.0], rounds_of(9, 8))
    one, other, third = (dp_multiple(DpMultiple(size=4), rows_given(group, seed=s))[0].tolist() for s in (1, 1, 2))
    assert one == other != third


def test_a_multiple_may_be_cut_group_by_group() -> None:
    groups = (rewarded([1.0], rounds_of(5)), rewarded([1.0], rounds_of(3), key="g2", first=3))
    kept, _ = dp_multiple(DpMultiple(size=4, per="group"), rows_given(*groups))
    assert Counter((kept < 5).tolist()) == {True: 4}


def test_fewer_rows_than_ranks_are_an_empty_step() -> None:
    chain = a_chain(select={"name": "dp-multiple", "size": 8})
    step = a_step(chain, [rewarded([1.0, 0.0])])
    assert (step.batch.rows, step.steps, step.weights, step.live_rows) == (0, (), (), ())
    assert set(step.fates.values()) == {"unselected"}


# Segments ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, 500), st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_exactly_so_many_rows_of_every_group(seed: int, count: int) -> None:
    groups = random_groups(seed, groups=3, rollouts=5)
    what = rows_given(*groups)
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
    chain = a_chain(select={"name": "segment-sample", "count": 4}, weight={"name": "row-mean"})
    step = a_step(chain, [rewarded([1.0, 0.0])])
    assert step.batch.rows == len(step.rows) == 4
    assert step.weights[0].tolist() == pytest.approx([1 / 12] * 12)


# Groups and credit ------------------------------------------------------------------------------------------------


def test_groups_whose_rewards_are_the_same_are_left_out_when_asked() -> None:
    groups = [rewarded([1.0, 1.0]), rewarded([1.0, 0.0], key="g2", first=5)]
    seen = seen_by(a_chain(select={"name": "informative"}), groups)
    assert seen.batch.group == ("g2",)
    assert sorted(seen.fates.values()) == ["unselected"] * 2


def test_imitation_keeps_what_went_well_and_at_most_so_many() -> None:
    chain = a_chain(select={"name": "successes", "least": 0.5, "most": 2})
    groups = [rewarded([1.0, 0.0, 0.5, 0.9]), rewarded([0.0], key="g2", first=9)]
    seen = seen_by(chain, groups)
    assert seen.batch.groups == 1
    assert len(seen.batch.reward) == 2
    assert (seen.batch.reward >= 0.5).all()


def test_statistics_may_be_over_some_of_the_rollouts() -> None:
    seen = seen_by(a_chain(select={"name": "rollout-sample", "count": 3}), [rewarded([1.0, 0.0] * 3), rewarded([0.0])])
    assert np.bincount(seen.batch.rollout_group).tolist() == [3, 1]
    assert "unselected" in seen.fates.values()


def test_rows_without_credit_may_leave_the_averages_too() -> None:
    what = rows_given(rewarded([1.0, 0.0]), advantage=0.0)
    what.advantage[what.batch.token_row == 1] = -2
    assert informed(Informed(), what)[0].tolist() == [1]


def test_selections_see_what_those_before_them_left() -> None:
    cut = a_sample(0.0, rounds_of(3)[0], run=3, outcome="truncated")
    chain = a_chain(select=[{"name": "overlong"}, {"name": "segment-sample", "count": 5}])
    step = a_step(chain, [a_group(cut, a_sample(1.0, run=1), a_sample(0.0, run=2))])
    assert step.batch.rows == 5
    assert set(step.batch.row_rollout.tolist()) == {1, 2}
