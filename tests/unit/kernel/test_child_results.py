"""What a child run passes on to its parent: its quotes first, how much it read, and what it left open."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from offing.core.evidence import EvidenceIndex
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.run import RunStatus, RunUsage, StopReason
from offing.core.step import Step, StepKind
from offing.core.tool import SourceSpan
from offing.kernel.child_runs import MAX_PASSAGES, build_result_payload, child_result_from_step
from offing.kernel.run_store import ChildRun, StoredChildResult
from offing.sdk import ChildRequest

CHILD = ChildRun(UUID(int=9), RunStatus.DONE, StopReason.TURN_LIMIT, "", RunUsage(turns=3), has_ended=True)


def a_step(seq: int, kind: StepKind, payload: dict[str, Any]) -> Step:
    return Step(seq, kind, "", payload, "", "", True, 0, 0, 1, datetime(2026, 1, 1, tzinfo=UTC), 1)


def a_search(seq: int, numbers: Sequence[int], tool: str = "search_library", **more: Any) -> Step:
    passages = [
        {"text_id": str(UUID(int=n)), "source": str(UUID(int=n)), "start": 0, "end": 5, "text": f"text {n}"}
        for n in numbers
    ]
    return a_step(seq, StepKind.TOOL_RESULT, {"tool": tool, "content": {"passages": passages, **more}})


def a_report(*, quoted: Sequence[int], named: Sequence[int]) -> Report:
    """A report whose first sentence quotes passages and whose second one names passages."""
    citations = tuple(
        Citation(n, SourceSpan(UUID(int=n), 0, 5), "text" if n in quoted else "", UUID(int=n), "")
        for n in (*quoted, *named)
    )
    sentences = (Sentence("s1", "It is so.", tuple(quoted)), Sentence("s2", "So is this.", passages=tuple(named)))
    return Report(
        "T", ReportStatus.COMPLETE, "answered", None, (Section("H", sentences),), citations, "Nobody says why."
    )


def payload_of(stored: StoredChildResult) -> dict[str, Any]:
    return build_result_payload(ChildRequest("Why?"), CHILD, stored)


def result_of(stored: StoredChildResult) -> Any:
    payload = payload_of(stored)
    index = EvidenceIndex()
    index.add(payload["content"], seq=4)
    return child_result_from_step(a_step(4, StepKind.TOOL_RESULT, payload), index)


READ = StoredChildResult(a_report(quoted=[30, 31], named=[2]), (a_search(1, range(1, 33)),), {}, {})


def test_quoted_passages_come_first_then_named_ones_and_the_rest_is_counted() -> None:
    result = result_of(READ)
    assert [e.text for e in result.evidence][:4] == ["text 30", "text 31", "text 2", "text 1"]
    assert (result.quoted, result.cited) == (("E1", "E2"), ("E1", "E2", "E3"))
    assert (len(result.evidence), result.read_passages) == (MAX_PASSAGES, 32)
    assert (result.limits, result.stop) == ("Nobody says why.", StopReason.TURN_LIMIT)


def test_no_cited_passage_is_left_out_however_many_there_are() -> None:
    many = range(1, 2 * MAX_PASSAGES)
    stored = replace(READ, report=a_report(quoted=many, named=[]), tool_results=(a_search(1, [*many, 100]),))
    result = result_of(stored)
    assert len(result.evidence) == len(result.cited) == 2 * MAX_PASSAGES - 1
    assert result.read_passages == 2 * MAX_PASSAGES


def test_passages_that_a_child_of_the_child_did_not_pass_on_are_counted() -> None:
    stored = replace(READ, tool_results=(a_search(1, range(1, 33)), a_search(2, [40], "child_run", read=8)))
    assert result_of(stored).read_passages == 32 + 1 + 7


def test_parts_that_the_last_verification_did_not_find_covered_are_open_points() -> None:
    coverage = [
        {"sub_question": "When?", "covered": True, "missing": ""},
        {"sub_question": "Why?", "covered": False, "missing": "a reason"},
        {"sub_question": "How?", "covered": False, "missing": ""},
    ]
    verification = a_step(3, StepKind.VERIFICATION, {"output": {"coverage": coverage}})
    assert result_of(replace(READ, verification=verification)).open_points == ("Why?: a reason", "How?")
    for output in (None, "no", {"coverage": "none"}, {"coverage": [1, None]}):
        other = a_step(3, StepKind.VERIFICATION, {"output": output})
        assert "open" not in payload_of(replace(READ, verification=other))["content"]


def test_a_result_that_was_recorded_without_counts_is_read_as_before() -> None:
    payload = payload_of(READ)
    old = {name: payload["content"][name] for name in ("passages", "answer", "findings", "limits")}
    index = EvidenceIndex()
    index.add(old, seq=4)
    result = child_result_from_step(a_step(4, StepKind.TOOL_RESULT, payload | {"content": old}), index)
    assert result.cited == ("E1", "E2", "E3")
    assert (result.quoted, result.open_points, result.read_passages) == ((), (), MAX_PASSAGES)
