"""What steps say, read from their payloads."""

from datetime import UTC, datetime
from typing import Any

import pytest

from offing.core.run import RunStatus, StopReason
from offing.core.step import Step, StepDraft, StepKind, step_from_draft
from offing.core.step_codes import StepSummary, StepSummaryCode
from offing.core.step_summary import summarize_step
from offing.services.runs import draft_end_step
from offing_graphs.shared.outline import draft_continued


def a_step(kind: StepKind, payload: dict[str, Any], label: str = "") -> Step:
    return recorded(StepDraft(kind, "a title", payload, label))


def recorded(draft: StepDraft) -> Step:
    return step_from_draft(draft, 3, datetime(2026, 11, 27, tzinfo=UTC), 1)


def test_the_end_names_its_reason_and_what_went_wrong() -> None:
    ended = recorded(draft_end_step(RunStatus.FAILED, StopReason.GRAPH_ERROR, detail="ValueError: no"))
    assert summarize_step(ended) == StepSummary(
        StepSummaryCode.ENDED, {"reason": "graph_error", "error": "ValueError: no"}
    )


def test_a_note_names_the_messages_that_were_read() -> None:
    note = a_step(StepKind.NOTE, {"messages": [4, 6]}, "message read")
    assert summarize_step(note) == StepSummary(StepSummaryCode.MESSAGES_READ, {"seqs": [4, 6]})


def test_a_run_that_continues_names_the_open_parts() -> None:
    summary = summarize_step(recorded(draft_continued(("Who?", "When?"), 2)))
    assert summary == StepSummary(StepSummaryCode.CONTINUED, {"parts": ["Who?", "When?"]})


def test_a_search_counts_passages_and_sources_and_names_its_place_in_a_batch() -> None:
    content = {"passages": [{"source": "a"}, {"source": "a"}, {"source": "b"}]}
    payload = {"tool": "search_library", "status": "ok", "content": content}
    batch = {"batch": {"id": "1", "number": 2, "size": 3}}
    summary = summarize_step(a_step(StepKind.TOOL_RESULT, payload | batch))
    assert summary is not None
    assert summary.parameters == {"passages": 3, "sources": 2, "origin": "", "number": 2, "size": 3}


@pytest.mark.parametrize(
    ("kind", "payload", "label"),
    [
        (StepKind.NOTE, {"messages": "4"}, "message read"),
        (StepKind.NOTE, {"open": [1]}, "continue"),
        (StepKind.NOTE, {}, "route"),
        (StepKind.VERIFICATION, {"output": "yes"}, ""),
        (StepKind.REPORT, {"supported": True, "sentences": 2, "citations": 1}, ""),
        (StepKind.TOOL_RESULT, {}, ""),
        (StepKind.TOOL_RESULT, {"tool": "search_library", "status": "failed", "content": {}}, ""),
        (StepKind.ENDED, {}, ""),
        (StepKind.PLAN, {"output": {}}, "plan"),
    ],
)
def test_steps_of_other_authors_and_failed_calls_keep_their_own_words(
    kind: StepKind, payload: dict[str, Any], label: str
) -> None:
    assert summarize_step(a_step(kind, payload, label)) is None
