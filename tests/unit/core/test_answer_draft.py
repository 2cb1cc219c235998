"""A viewer gets the text of each draft once and in order, and no text of a lost attempt stays."""

from dataclasses import replace

from offing.core.answer_draft import AnswerDraft, DraftEnd, DraftPart, DraftTracker

DRAFT = AnswerDraft("call", fence=3, attempt=1, role="planner", label="plan")
RETRY = replace(DRAFT, attempt=2)
NEXT_CLAIM = replace(DRAFT, fence=4)


def test_text_is_passed_on_once_and_in_order() -> None:
    tracker = DraftTracker()
    assert tracker.apply(DraftPart(DRAFT, 0, "abc")) == [DraftPart(DRAFT, 0, "abc")]
    assert tracker.apply(DraftPart(DRAFT, 0, "abc")) == []
    assert tracker.apply(DraftPart(DRAFT, 2, "cd")) == [DraftPart(DRAFT, 3, "d")]
    assert tracker.apply(DraftPart(DRAFT, 4, "e")) == [DraftPart(DRAFT, 4, "e")]


def test_missing_text_is_a_gap_that_the_draft_so_far_closes() -> None:
    tracker = DraftTracker()
    assert tracker.apply(DraftPart(DRAFT, 5, "f")) is None
    assert tracker.synchronize([DraftPart(DRAFT, 0, "abcdef")]) == [DraftPart(DRAFT, 0, "abcdef")]
    assert tracker.apply(DraftPart(DRAFT, 3, "def")) == []


def test_another_attempt_replaces_the_text_and_an_older_one_is_ignored() -> None:
    tracker = DraftTracker()
    tracker.apply(DraftPart(DRAFT, 0, "abc"))
    assert tracker.apply(DraftPart(RETRY, 0, "x")) == [DraftPart(RETRY, 0, "x")]
    assert tracker.apply(DraftPart(DRAFT, 3, "d")) == []


def test_a_draft_that_is_gone_is_withdrawn() -> None:
    tracker = DraftTracker()
    tracker.apply(DraftPart(DRAFT, 0, "abc"))
    assert tracker.synchronize([]) == [DraftEnd("call", 3)]
    assert tracker.synchronize([]) == []


def test_the_end_of_a_call_withdraws_its_draft_alone() -> None:
    tracker, other = DraftTracker(), replace(DRAFT, call_id="other")
    tracker.apply(DraftPart(DRAFT, 0, "abc"))
    tracker.apply(DraftPart(other, 0, "x"))
    assert tracker.apply(DraftEnd("call", 3)) == [DraftEnd("call", 3)]
    assert tracker.apply(DraftPart(other, 1, "y")) == [DraftPart(other, 1, "y")]


def test_a_later_claim_withdraws_what_a_crashed_worker_left_and_silences_it() -> None:
    tracker = DraftTracker()
    tracker.apply(DraftPart(DRAFT, 0, "abc"))
    assert tracker.apply(DraftEnd("", 4)) == [DraftEnd("call", 4)]
    assert tracker.apply(DraftPart(DRAFT, 0, "abcd")) == []
    assert tracker.apply(DraftEnd("call", 3)) == []
    assert tracker.apply(DraftPart(NEXT_CLAIM, 0, "new")) == [DraftPart(NEXT_CLAIM, 0, "new")]
