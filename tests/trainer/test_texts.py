"""Text that is to be imitated, as rows of the student's own tokens."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from offing.core.episode import Dialogue, Episode, SegmentHead, SpanAt, Talk
from offing.core.model import Message
from offing.core.rows import SPAN_CODES
from offing_trainer.learner.reader import FolderReader
from offing_trainer.texts import rows_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EPISODE = Episode(
    run=UUID(int=1), kind="rollout", graph="g", graph_version="1", question="?", seed=0, status="done",
    stop_reason="answered", outcome="answered", reward=1.0, created_at=NOON, started_at=NOON, ended_at=NOON,
    settled_at=NOON,
)  # fmt: skip
HEAD = SegmentHead(0, "planner", "root")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> FolderReader:
    from offing_engine.small import new_policy

    folder: Path = tmp_path_factory.mktemp("policy") / "words"
    new_policy(folder, ["ask", "e0", "e1", "r0", "t0", "t1", "none"])
    return FolderReader(folder)


def said(place: int, prompt: Sequence[tuple[str, str]], completion: str, **more: object) -> Talk:
    values: dict[str, object] = {
        "seq": place + 1, "number": place + 1, "segment": 0, "place": place, "role": "planner", "engine": "rules",
        "model": "random", "completion": completion, "trainable": "sft", "trainable_reason": "", "at": NOON,
        "messages": tuple(Message(role, (text,)) for role, text in prompt),
    }  # fmt: skip
    return Talk(**(values | more))  # type: ignore[arg-type]


FIRST = said(0, [("user", "ask e0 r0")], "t0 r0 e0")
SECOND = said(1, [("user", "ask e0 r0"), ("assistant", "t0 r0 e0"), ("user", "none")], "t1 r0 e0")


def talk(*turns: Talk) -> Dialogue:
    return Dialogue(EPISODE, (HEAD,), turns)


def test_turns_that_go_on_from_one_another_are_one_row_of_the_whole_conversation(reader: FolderReader) -> None:
    (row,) = rows_of(talk(FIRST, SECOND), reader)
    whole = reader.prompt(SECOND.messages) + reader.answer(SECOND.messages, SECOND.completion)[0]
    assert row.token_ids.tolist() == whole
    assert row.turn_index[row.loss_mask].tolist() == [0] * 4 + [1] * 4


def test_only_what_was_answered_is_trained_with_the_end_of_the_turn(reader: FolderReader) -> None:
    (row,) = rows_of(talk(FIRST), reader)
    assert row.token_ids[row.loss_mask].tolist() == reader.answer(FIRST.messages, "t0 r0 e0")[0]
    assert row.loss_mask.sum() == 4


def test_tokens_of_text_have_no_log_probability(reader: FolderReader) -> None:
    (row,) = rows_of(talk(FIRST), reader)
    assert np.isnan(row.behaviour_logprobs[row.loss_mask]).all()
    assert (row.behaviour_logprobs[~row.loss_mask] == 0).all()


def test_a_prompt_that_does_not_repeat_what_was_before_begins_a_row(reader: FolderReader) -> None:
    other = said(1, [("user", "ask e1 r0")], "t1 r0 e1")
    rows = rows_of(talk(FIRST, other), reader)
    assert [row.part for row in rows] == [0, 1]
    assert rows[1].token_ids.tolist() == reader.prompt(other.messages) + reader.answer(other.messages, "t1 r0 e1")[0]


def test_spans_of_text_lie_on_the_tokens_that_write_them(reader: FolderReader) -> None:
    (row,) = rows_of(talk(said(0, [("user", "ask e0 r0")], "t0 r0 e0", spans=(SpanAt("action", 0, 8),))), reader)
    assert set(row.span_kind[row.loss_mask].tolist()) == {SPAN_CODES["action"]}
    assert (row.span_kind[~row.loss_mask] == -1).all()


def test_other_roles_doubtful_turns_and_turns_for_nothing_are_left_out(reader: FolderReader) -> None:
    writer = said(1, [("user", "ask e0 r0")], "t1 r0 e0", role="writer")
    doubtful = said(2, [("user", "ask e0 r0")], "t1 r0 e0", quarantine="differs")
    nothing = said(3, [("user", "ask e0 r0")], "t1 r0 e0", trainable="none")
    (row,) = rows_of(talk(FIRST, writer, doubtful, nothing), reader, ["planner"])
    assert row.turns.seq == (1,)


def test_a_turn_that_is_too_long_for_a_row_is_left_out(reader: FolderReader) -> None:
    length = len(reader.prompt(FIRST.messages)) + 4
    assert rows_of(talk(FIRST, SECOND), reader, longest=length)[0].turns.seq == (1,)
    assert rows_of(talk(FIRST), reader, longest=length - 1) == []
