"""The state of a run's sources: what counts more, and how lists stay short."""

from uuid import UUID, uuid4

from offing.core.run_sources import (
    MAX_SPANS_PER_SOURCE,
    MAX_STEPS_PER_SOURCE,
    FailedRead,
    Passage,
    SourceState,
    list_sources,
)
from offing.core.tool import SourceSpan, ToolStatus

SOURCE, TEXT = uuid4(), uuid4()
URL = "https://sea.example"


def passage(seq: int, start: int = 0, *, is_read: bool = False, source: UUID | None = SOURCE) -> Passage:
    return Passage(seq, is_read, source, "Sea", URL, SourceSpan(TEXT, start, start + 1) if source else None)


def failed(seq: int, status: ToolStatus = ToolStatus.FAILED) -> FailedRead:
    return FailedRead(seq, URL, status, "It is gone.")


def test_a_citation_counts_more_than_a_judgment_and_a_failed_call() -> None:
    discarded = {SourceSpan(TEXT, 0, 1): "Another sea."}
    (source,) = list_sources([passage(2)], [failed(3)], discarded, [SOURCE])
    assert (source.state, source.reason, source.step_seqs) == (SourceState.CITED, "", (2, 3))


def test_a_source_is_rejected_only_if_all_its_passages_are() -> None:
    discarded = {SourceSpan(TEXT, 0, 1): "Another sea."}
    (source,) = list_sources([passage(2), passage(2, 5)], [], discarded, [])
    assert source.state is SourceState.FOUND
    (source,) = list_sources([passage(2)], [], discarded, [])
    assert (source.state, source.reason) == (SourceState.REJECTED, "Another sea.")


def test_a_page_that_failed_once_and_was_read_later_is_read() -> None:
    (source,) = list_sources([passage(4, is_read=True)], [failed(3)], {}, [])
    assert (source.state, source.reason) == (SourceState.READ, "")


def test_the_last_of_several_failures_gives_the_reason() -> None:
    (source,) = list_sources([passage(1, source=None)], [failed(3), failed(5, ToolStatus.DENIED)], {}, [])
    assert (source.state, source.step_seqs, source.step_count) == (SourceState.BLOCKED, (1, 3, 5), 3)


def test_steps_and_passages_of_a_source_are_bounded_and_counted() -> None:
    (source,) = list_sources([passage(n, n) for n in range(1, 200)], [], {}, [])
    assert (len(source.step_seqs), source.step_count) == (MAX_STEPS_PER_SOURCE, 199)
    assert (len(source.spans), source.span_count) == (MAX_SPANS_PER_SOURCE, 199)
