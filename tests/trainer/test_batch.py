"""Groups as flat arrays: what points where, and what is left when rows are chosen."""

from dataclasses import replace

import numpy as np

from offing_trainer.batch import UNKNOWN_OUTCOME_CODE, TrainingRollout, build_training_batch, expand_ranges
from tests.trainer.builders import a_group, a_row, a_sample, random_batch, rewarded


def test_turns_of_a_rollout_follow_one_another_across_rows() -> None:
    later, earlier = a_row((1, 2), first=3, segment=1), a_row((3,), first=1)
    batch = build_training_batch(
        [a_group(TrainingRollout(later.metadata, (later, earlier)), a_sample(0.0, ((4,),), run=2))]
    )
    assert batch.turn_number.tolist() == [1, 3, 4, 1]
    assert batch.turn_row.tolist() == [1, 0, 0, 2]
    assert batch.turn_rollout.tolist() == [0, 0, 0, 1]
    assert batch.turn_token_counts.tolist() == [3, 1, 2, 4]
    assert batch.token_row.tolist() == [0] * 3 + [1] * 3 + [2] * 4
    assert batch.token_turn.tolist() == [1, 2, 2, 0, 0, 0, 3, 3, 3, 3]


def test_what_is_not_known_is_not_zero() -> None:
    group = rewarded([None])
    batch = build_training_batch(
        [a_group(replace(group.rollouts[0], metadata=replace(group.rollouts[0].metadata, outcome=None)))]
    )
    assert np.isnan(batch.reward).all()
    assert batch.outcome.tolist() == [UNKNOWN_OUTCOME_CODE]
    assert np.isnan(batch.entropy).all()


def test_a_rollout_without_rows_is_there() -> None:
    batch = build_training_batch([a_group(a_sample(1.0, (), run=1), a_sample(0.0, run=2))])
    assert (batch.num_rollouts, batch.num_rows, batch.policy_versions) == (2, 1, ("", "planner@1"))
    assert batch.token_rollout.tolist() == [1, 1, 1]


def test_a_replayed_sample_may_be_of_another_version() -> None:
    old = a_sample(1.0, run=1, policy="planner@0", replayed=True)
    batch = build_training_batch([a_group(old, a_sample(0.0, run=2))])
    assert batch.policy_versions == ("planner@0", "planner@1")
    assert batch.replayed.tolist() == [True, False]


def test_chosen_rows_keep_their_rollouts_and_leave_turns_without_a_row() -> None:
    batch = build_training_batch([rewarded([1.0, 0.0], [((1, 2), (3,)), ((4,),)])])
    left = batch.select_rows(np.array([2, 1]))
    assert left.row_keys == (batch.row_keys[2], batch.row_keys[1])
    assert left.row_rollout.tolist() == [1, 0]
    assert left.turn_row.tolist() == [-1, -1, 1, 0]
    assert left.turn_token_counts.tolist() == batch.turn_token_counts.tolist()
    assert left.token_turn.tolist() == [3] * 4 + [2] * 3
    assert (left.token_ids == batch.token_ids[batch.token_indices(np.array([2, 1]))]).all()
    again = left.select_rows(np.array([1]))
    assert again.turn_row.tolist() == [-1, -1, 0, -1]


def test_a_row_may_be_chosen_twice() -> None:
    batch = random_batch(2)
    twice = batch.select_rows(np.array([1, 0, 1]))
    assert twice.row_keys == (batch.row_keys[1], batch.row_keys[0], batch.row_keys[1])
    first, last = (twice.token_indices(np.array([n])) for n in (0, 2))
    assert (twice.token_ids[first] == twice.token_ids[last]).all()


def test_no_row_may_be_left() -> None:
    left = random_batch(2).select_rows(np.empty(0, np.int64))
    assert (left.num_rows, left.num_tokens) == (0, 0)
    assert set(left.turn_row.tolist()) == {-1}
    assert left.select_rows(np.empty(0, np.int64)).num_rows == 0


def test_ranges_are_laid_end_to_end() -> None:
    assert expand_ranges(np.array([5, 0, 3]), np.array([7, 0, 4])).tolist() == [5, 6, 3]
