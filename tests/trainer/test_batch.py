"""Groups as flat arrays: what points where, and what is left when rows are chosen."""

from dataclasses import replace

import numpy as np

from offing_trainer.batch import UNKNOWN_OUTCOME, Sample, batch_of, spread
from tests.trainer.builders import a_group, a_row, a_sample, random_batch, rewarded


def test_turns_of_a_rollout_follow_one_another_whatever_row_they_are_in() -> None:
    later, earlier = a_row((1, 2), first=3, segment=1), a_row((3,), first=1)
    batch = batch_of([a_group(Sample(later.episode, (later, earlier)), a_sample(0.0, ((4,),), run=2))])
    assert batch.turn_number.tolist() == [1, 3, 4, 1]
    assert batch.turn_row.tolist() == [1, 0, 0, 2]
    assert batch.turn_rollout.tolist() == [0, 0, 0, 1]
    assert batch.turn_tokens.tolist() == [3, 1, 2, 4]
    assert batch.token_row.tolist() == [0] * 3 + [1] * 3 + [2] * 4
    assert batch.token_turn.tolist() == [1, 2, 2, 0, 0, 0, 3, 3, 3, 3]


def test_what_is_not_known_is_not_zero() -> None:
    group = rewarded([None])
    batch = batch_of([a_group(replace(group.samples[0], episode=replace(group.samples[0].episode, outcome=None)))])
    assert np.isnan(batch.reward).all()
    assert batch.outcome.tolist() == [UNKNOWN_OUTCOME]
    assert np.isnan(batch.entropy).all()


def test_a_rollout_without_rows_is_there() -> None:
    batch = batch_of([a_group(a_sample(1.0, (), run=1), a_sample(0.0, run=2))])
    assert (batch.rollouts, batch.rows, batch.policy) == (2, 1, ("", "planner@1"))
    assert batch.token_rollout.tolist() == [1, 1, 1]


def test_a_replayed_sample_may_be_of_another_version() -> None:
    old = a_sample(1.0, run=1, policy="planner@0", replayed=True)
    batch = batch_of([a_group(old, a_sample(0.0, run=2))])
    assert batch.policy == ("planner@0", "planner@1")
    assert batch.replayed.tolist() == [True, False]


def test_chosen_rows_keep_their_rollouts_and_leave_turns_without_a_row() -> None:
    batch = batch_of([rewarded([1.0, 0.0], [((1, 2), (3,)), ((4,),)])])
    left = batch.only(np.array([2, 1]))
    assert left.row == (batch.row[2], batch.row[1])
    assert left.row_rollout.tolist() == [1, 0]
    assert left.turn_row.tolist() == [-1, -1, 1, 0]
    assert left.turn_tokens.tolist() == batch.turn_tokens.tolist()
    assert left.token_turn.tolist() == [3] * 4 + [2] * 3
    assert (left.token_id == batch.token_id[batch.tokens_of(np.array([2, 1]))]).all()
    again = left.only(np.array([1]))
    assert again.turn_row.tolist() == [-1, -1, 0, -1]


def test_a_row_may_be_chosen_twice() -> None:
    batch = random_batch(2)
    twice = batch.only(np.array([1, 0, 1]))
    assert twice.row == (batch.row[1], batch.row[0], batch.row[1])
    first, last = (twice.tokens_of(np.array([n])) for n in (0, 2))
    assert (twice.token_id[first] == twice.token_id[last]).all()


def test_no_row_may_be_left() -> None:
    left = random_batch(2).only(np.empty(0, np.int64))
    assert (left.rows, left.tokens) == (0, 0)
    assert set(left.turn_row.tolist()) == {-1}
    assert left.only(np.empty(0, np.int64)).rows == 0


def test_stretches_are_laid_end_to_end() -> None:
    assert spread(np.array([5, 0, 3]), np.array([7, 0, 4])).tolist() == [5, 6, 3]
