"""Text that is to be imitated, as rows of the student's own tokens."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from offing.core.model import Message
from offing.core.training_rows import SPAN_CODES
from offing.core.trajectory_records import LocatedSpan, RoleCallRecord, SegmentInfo, TextTrajectory, TrajectoryMetadata
from offing_trainer.learner.template_tokenizer import TemplateTokenizer
from offing_trainer.text_rows import build_text_rows

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
METADATA = TrajectoryMetadata(
    run_id=UUID(int=1), kind="rollout", graph="g", graph_version="1", question="?", seed=0, status="done",
    stop_reason="answered", outcome="answered", reward=1.0, created_at=NOON, started_at=NOON, ended_at=NOON,
    finalized_at=NOON,
)  # fmt: skip
HEAD = SegmentInfo(0, "planner", "root")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> TemplateTokenizer:
    from offing_engine.random_policy import create_random_policy

    folder: Path = tmp_path_factory.mktemp("policy") / "words"
    create_random_policy(folder, ["ask", "e0", "e1", "r0", "t0", "t1", "none"])
    return TemplateTokenizer(folder)


def role_call(position: int, prompt: Sequence[tuple[str, str]], completion: str, **more: object) -> RoleCallRecord:
    values: dict[str, object] = {
        "seq": position + 1, "turn": position + 1, "segment_idx": 0, "position": position, "role": "planner",
        "engine": "rules", "model": "random", "completion": completion, "trainable": "sft",
        "trainable_reason": "", "at": NOON,
        "messages": tuple(Message(role, (text,)) for role, text in prompt),
    }  # fmt: skip
    return RoleCallRecord(**(values | more))  # type: ignore[arg-type]


FIRST = role_call(0, [("user", "ask e0 r0")], "t0 r0 e0")
SECOND = role_call(1, [("user", "ask e0 r0"), ("assistant", "t0 r0 e0"), ("user", "none")], "t1 r0 e0")


def trajectory(*turns: RoleCallRecord) -> TextTrajectory:
    return TextTrajectory(METADATA, (HEAD,), turns)


def test_turns_that_continue_from_one_another_are_one_row_of_the_whole_conversation(reader: TemplateTokenizer) -> None:
    (row,) = build_text_rows(trajectory(FIRST, SECOND), reader)
    whole = reader.encode_prompt(SECOND.messages) + reader.encode_answer(SECOND.messages, SECOND.completion)[0]
    assert row.token_ids.tolist() == whole
    assert row.turn_index[row.loss_mask].tolist() == [0] * 4 + [1] * 4


def test_only_what_was_answered_is_trained_with_the_end_of_the_turn(reader: TemplateTokenizer) -> None:
    (row,) = build_text_rows(trajectory(FIRST), reader)
    assert row.token_ids[row.loss_mask].tolist() == reader.encode_answer(FIRST.messages, "t0 r0 e0")[0]
    assert row.loss_mask.sum() == 4


def test_tokens_of_text_have_no_log_probability(reader: TemplateTokenizer) -> None:
    (row,) = build_text_rows(trajectory(FIRST), reader)
    assert np.isnan(row.behavior_logprobs[row.loss_mask]).all()
    assert (row.behavior_logprobs[~row.loss_mask] == 0).all()


def test_a_prompt_that_does_not_repeat_what_was_before_begins_a_row(reader: TemplateTokenizer) -> None:
    other = role_call(1, [("user", "ask e1 r0")], "t1 r0 e1")
    rows = build_text_rows(trajectory(FIRST, other), reader)
    assert [row.part for row in rows] == [0, 1]
    assert (
        rows[1].token_ids.tolist()
        == reader.encode_prompt(other.messages) + reader.encode_answer(other.messages, "t1 r0 e1")[0]
    )


def test_spans_of_text_lie_on_the_tokens_that_write_them(reader: TemplateTokenizer) -> None:
    (row,) = build_text_rows(
        trajectory(role_call(0, [("user", "ask e0 r0")], "t0 r0 e0", spans=(LocatedSpan("action", 0, 8),))), reader
    )
    assert set(row.span_kind[row.loss_mask].tolist()) == {SPAN_CODES["action"]}
    assert (row.span_kind[~row.loss_mask] == -1).all()


def test_other_roles_doubtful_turns_and_turns_for_nothing_are_left_out(reader: TemplateTokenizer) -> None:
    writer = role_call(1, [("user", "ask e0 r0")], "t1 r0 e0", role="writer")
    doubtful = role_call(2, [("user", "ask e0 r0")], "t1 r0 e0", quarantine="differs")
    nothing = role_call(3, [("user", "ask e0 r0")], "t1 r0 e0", trainable="none")
    (row,) = build_text_rows(trajectory(FIRST, writer, doubtful, nothing), reader, ["planner"])
    assert row.turns.seq == (1,)


def test_a_turn_that_is_too_long_for_a_row_is_left_out(reader: TemplateTokenizer) -> None:
    length = len(reader.encode_prompt(FIRST.messages)) + 4
    assert build_text_rows(trajectory(FIRST, SECOND), reader, max_row_tokens=length)[0].turns.seq == (1,)
    assert build_text_rows(trajectory(FIRST), reader, max_row_tokens=length - 1) == []
