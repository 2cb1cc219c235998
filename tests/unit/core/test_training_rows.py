"""Turns become rows: what is merged, what is masked, and what is rejected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.packed_segment import PackedSegment
from offing.core.training_rows import CorruptSegmentError, TrainingRow, build_rows
from tests.unit.exports.builders import a_row, float16, many_turns, packed, trajectory_metadata

IDS = st.integers(0, 2**24 - 1)

TURNS = st.lists(st.tuples(st.lists(IDS, max_size=4), st.lists(IDS, min_size=1, max_size=9)), min_size=1, max_size=6)


def rows(segment: PackedSegment, *, quarantined: bool = False) -> list[TrainingRow]:
    return build_rows(trajectory_metadata(), segment, include_quarantined=quarantined)


def test_turns_that_continue_from_the_very_tokens_share_a_row() -> None:
    (row,) = rows(packed(((1, 2), (3,)), ((4,), (5, 6))))
    assert row.token_ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert row.loss_mask.tolist() == [False, False, True, False, True, True]
    assert row.behavior_logprobs.tolist() == [0, 0, -0.125, 0, -0.25, -0.375]
    assert row.turn_index.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_prompt_that_leaves_tokens_out_begins_a_row_with_its_whole_prompt() -> None:
    one, two, three = rows(packed(((1, 2), (3, 4)), ((5,), (6,)), ((7,), (8,)), offsets=(0, 3, 3)))
    assert one.token_ids.tolist() == [1, 2, 3, 4]
    assert two.token_ids.tolist() == [1, 2, 3, 5, 6]
    assert three.token_ids.tolist() == [1, 2, 3, 7, 8]
    assert two.loss_mask.tolist() == [False] * 4 + [True]
    assert [(r.part, r.turns.seq) for r in (one, two, three)] == [(0, (3,)), (1, (4,)), (2, (5,))]
    assert three.turn_index.tolist() == [0] * 5


def test_a_context_is_put_together_from_the_turns_that_hold_it() -> None:
    *_, last = rows(packed(((1, 2), (3, 4)), ((5,), (6,)), ((7,), (8,)), ((9,), (10,)), offsets=(0, 4, 5, 2)))
    assert last.token_ids.tolist() == [1, 2, 9, 10]
    *_, last = rows(packed(((1, 2), (3, 4)), ((5,), (6,)), ((7,), (8,)), offsets=(0, 2, 3)))
    assert last.token_ids.tolist() == [1, 2, 5, 7, 8]


def test_another_tokenizer_begins_a_row() -> None:
    segment = packed(((1,), (2,)), ((3,), (4,)), tokenizer_sha256=("a", "b"))
    assert [r.tokenizer_sha256 for r in rows(segment)] == ["a", "b"]


def test_a_gap_is_rejected() -> None:
    with pytest.raises(CorruptSegmentError, match="role call 4 starts at token 9, but the segment has only 2 tokens"):
        rows(packed(((1,), (2,)), ((3,), (4,)), offsets=(0, 9)))


def test_tokens_that_the_policy_did_not_sample_are_masked() -> None:
    (row,) = rows(packed(((1,), (2, 3, 4)), masks=((True, False, True),)))
    assert row.loss_mask.tolist() == [False, True, False, True]
    assert row.behavior_logprobs.tolist() == [0, -0.125, 0, -0.375]


def test_masks_of_more_than_a_byte_stay_with_their_turns() -> None:
    first, second = [n % 3 == 0 for n in range(11)], [n % 2 == 0 for n in range(9)]
    (row,) = rows(packed(((1,), range(11)), ((2,), range(9)), masks=(first, second)))
    assert row.loss_mask.tolist() == [False, *first, False, *second]


def test_a_turn_for_imitation_alone_is_context() -> None:
    (row,) = rows(packed(((1,), (2,)), ((3,), (4,)), trainable=("sft", "rl")))
    assert row.loss_mask.tolist() == [False, False, False, True]


def test_quarantined_turns_are_left_out_unless_asked_for() -> None:
    doubt = many_turns(2, quarantine=("", "other log-probabilities"))
    segment = packed(((1,), (2,)), ((3,), (4,)), turns=doubt)
    assert rows(segment)[0].loss_mask.tolist() == [False, True, False, False]
    assert rows(segment, quarantined=True)[0].loss_mask.tolist() == [False, True, False, True]


def test_a_row_without_anything_to_train_is_no_row() -> None:
    assert rows(packed(((1,), (2,)), trainable=("sft",))) == []
    assert rows(packed(((1,), (2,)), turns=many_turns(1, quarantine=("doubt",)))) == []


def test_entropy_that_was_not_given_is_not_a_number() -> None:
    (row,) = rows(packed(((1,), (2,)), ((3,), (4, 5)), entropy=float16(0.5, 0.25), entropy_counts=(0, 2)))
    assert np.isnan(row.entropy[:3]).all()
    assert row.entropy[3:].tolist() == [0.5, 0.25]


def test_spans_lie_where_their_turn_put_them() -> None:
    (row,) = rows(packed(((1, 1), (2, 3)), ((4,), (5, 6)), spans=((0, "plan", 0, 1), (1, "answer", 1, 2))))
    assert row.span_kind.tolist() == [-1, -1, 0, -1, -1, -1, 8]


def test_rows_are_equal_only_when_everything_is() -> None:
    assert a_row() == a_row()
    assert a_row() != a_row(reward=0.2)
    (other,) = rows(packed(((11, 12), (13, 14, 2)), ((15,), (16, 2))))
    assert a_row() != other


@given(TURNS)
def test_however_turns_are_cut_no_token_is_lost_or_moved(turns: list[tuple[list[int], list[int]]]) -> None:
    (row,) = rows(packed(*turns))
    assert row.token_ids.tolist() == [token for prompt, completion in turns for token in (*prompt, *completion)]
    assert row.token_ids[row.loss_mask].tolist() == [token for _, completion in turns for token in completion]
    assert (row.behavior_logprobs[row.loss_mask] < 0).all()
