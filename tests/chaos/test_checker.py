"""The checker itself: it is content with a sound run, and finds each bug that is planted in one."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.chaos.checker import (
    CallFacts,
    GroupFacts,
    ReportFacts,
    RolloutFacts,
    Rows,
    RunFacts,
    SavedFacts,
    SegmentFacts,
    SentRequest,
    StepFacts,
    check_charged_once,
    check_repeated_whole,
    group_violations,
    one_tool_call_a_turn,
    same_record,
    violations,
)

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

TURNS = 4


def a_sound_run() -> Rows:
    """Four turns, a worker lost in the third; each turn a call, a tool and a memory; then a report and the end."""
    steps = [a_step(1, "queued", 0), a_step(2, "started", 1)]
    for turn in range(1, TURNS + 1):
        fence = 1 if turn < 3 else 2
        if turn == 3:
            steps.append(a_step(len(steps) + 1, "resumed", fence))
        for ordinal, kind in enumerate(("plan", "tool_result", "memory")):
            payload = {"role": "speaker", "output": {"word": f"w{turn}"}} if kind == "plan" else {}
            key = (2 * turn + (ordinal > 0), f"act{kind == 'plan'}", max(0, ordinal - 1))
            tokens = 5 if kind == "plan" else 0
            steps.append(a_step(len(steps) + 1, kind, fence, key=key, turn=turn, tokens=tokens, payload=payload))
    steps.append(a_step(len(steps) + 1, "report", 2, key=(11, "write", 0)))
    end = {"status": "done", "stop_reason": "answered"}
    steps.append(a_step(len(steps) + 1, "ended", 2, payload=end))
    seqs = [s.seq for s in steps if s.kind == "plan"]
    calls = tuple(CallFacts(seq, Decimal("0.01"), 5, "speaker", n // 2, n % 2, f"h{n}") for n, seq in enumerate(seqs))
    segments = (SegmentFacts(0, "speaker", None, "root"), SegmentFacts(1, "speaker", 0, "memory_edit"))
    saved = tuple(
        SavedFacts("", f"c{n}", f"c{n - 1}" if n else None, 1 if n < 3 else 2, 2 * n, BEGAN + timedelta(seconds=n))
        for n in range(5)
    )
    run = RunFacts("done", "answered", 2, len(steps) + 1, 4, 20, Decimal("0.04"), Decimal(0), BEGAN)
    return Rows(
        run, tuple(steps), saved, calls, (ReportFacts(1, len(steps) - 1, "complete", "answered", {}),), segments
    )


def a_step(seq: int, kind: str, fence: int, **changes: Any) -> StepFacts:
    defaults: dict[str, Any] = {"key": None, "turn": 0, "tokens": 0, "payload": {}}
    return StepFacts(seq=seq, kind=kind, fence=fence, at=BEGAN + timedelta(seconds=seq), **(defaults | changes))


def with_step(rows: Rows, seq: int, **changes: Any) -> Rows:
    return replace(rows, steps=tuple(replace(s, **changes) if s.seq == seq else s for s in rows.steps))


def with_run(rows: Rows, **changes: Any) -> Rows:
    return replace(rows, run=replace(rows.run, **changes))


def with_saved(rows: Rows, n: int, **changes: Any) -> Rows:
    return replace(rows, saved=tuple(replace(c, **changes) if i == n else c for i, c in enumerate(rows.saved)))


def with_call(rows: Rows, n: int, **changes: Any) -> Rows:
    return replace(rows, calls=tuple(replace(c, **changes) if i == n else c for i, c in enumerate(rows.calls)))


def with_segment(rows: Rows, n: int, **changes: Any) -> Rows:
    return replace(rows, segments=tuple(replace(s, **changes) if i == n else s for i, s in enumerate(rows.segments)))


def without_step(rows: Rows, seq: int) -> Rows:
    return replace(rows, steps=tuple(s for s in rows.steps if s.seq != seq))


def numbered(rows: Rows, steps: list[StepFacts]) -> Rows:
    """With other steps, in sequence, and the run's count to match."""
    again = tuple(replace(s, seq=n) for n, s in enumerate(steps, 1))
    return replace(with_run(rows, next_seq=len(again) + 1), steps=again)


def first(rows: Rows, kind: str) -> StepFacts:
    return next(s for s in rows.steps if s.kind == kind)


def doubled(rows: Rows, kind: str) -> Rows:
    result = first(rows, kind)
    return numbered(rows, [s for step in rows.steps for s in ([step, step] if step is result else [step])])


PLANTED: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "a step is missing": ("sequence", lambda r: without_step(r, 5)),
    "a step was stored twice": ("sequence", lambda r: replace(r, steps=(*r.steps[:5], r.steps[4], *r.steps[5:]))),
    "the run counts a step too many": ("sequence", lambda r: with_run(r, next_seq=r.run.next_seq + 1)),
    "a call was recorded twice": ("keys", lambda r: doubled(r, "tool_result")),
    "a stale worker appended": ("fences", lambda r: with_step(r, 12, fence=1)),
    "a step of a fence that never was": ("fences", lambda r: with_step(r, 14, fence=3)),
    "a stale worker saved": ("fences", lambda r: with_saved(r, 4, fence=1)),
    "a checkpoint has two children": ("checkpoints", lambda r: with_saved(r, 4, parent="c2")),
    "a checkpoint's parent is gone": ("checkpoints", lambda r: replace(r, saved=r.saved[1:])),
    "two runs of the same thread of work": ("checkpoints", lambda r: with_saved(r, 3, parent=None)),
    "a checkpoint goes back": ("checkpoints", lambda r: with_saved(r, 3, superstep=1)),
    "something was appended after the end": (
        "ending",
        lambda r: numbered(r, [*r.steps, a_step(0, "note", 2)]),
    ),
    "it ended twice": ("ending", lambda r: doubled(r, "ended")),
    "it never ended": ("ending", lambda r: with_run(r, status="running", ended_at=None)),
    "it ended otherwise than it says": ("ending", lambda r: with_run(r, stop_reason="turn_limit")),
    "tokens were booked twice": ("sums", lambda r: with_run(r, tokens=r.run.tokens + 5)),
    "money was not booked": ("sums", lambda r: with_run(r, usd=Decimal("0.03"))),
    "a turn was counted twice": ("sums", lambda r: with_run(r, turns=5)),
    "money is still reserved": ("sums", lambda r: with_run(r, reserved=Decimal("0.01"))),
    "a call has no row": ("journal", lambda r: replace(r, calls=r.calls[1:])),
    "a row has no call": ("journal", lambda r: replace(r, calls=(*r.calls, CallFacts(99, Decimal(0), 0)))),
    "two reports": ("one_report", lambda r: doubled(r, "report")),
    "no report": ("one_report", lambda r: replace(r, reports=())),
    "a segment is missing": ("context", lambda r: replace(r, segments=r.segments[1:])),
    "a segment without calls": (
        "context",
        lambda r: replace(r, segments=(*r.segments, SegmentFacts(2, "speaker", 1, "memory_edit"))),
    ),
    "a segment was opened twice": ("context", lambda r: with_segment(r, 1, idx=0)),
    "a segment follows itself": ("context", lambda r: with_segment(r, 1, parent=1)),
    "a segment follows another role's": ("context", lambda r: with_segment(r, 0, role="planner")),
    "a call was put into its segment twice": ("context", lambda r: with_call(r, 3, place=0)),
    "a call left a hole in its segment": ("context", lambda r: with_call(r, 3, place=2)),
    "a call is in a segment that is not there": ("context", lambda r: with_call(r, 3, segment=2)),
}


def test_the_checker_is_content_with_a_sound_run() -> None:
    rows = a_sound_run()
    requests = [SentRequest("speaker", turn, 100) for turn in (1, 2, 3, 3, 4)]
    assert [*violations(rows), *one_tool_call_a_turn(rows, TURNS), *check_charged_once(rows, requests, losses=1)] == []


@pytest.mark.parametrize(("rule", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_the_checker_finds_a_planted_bug(rule: str, plant: Callable[[Rows], Rows]) -> None:
    result = violations(plant(a_sound_run()))
    assert any(complaint.startswith(f"{rule}:") for complaint in result), result


def test_the_checker_finds_a_turn_without_its_tool_call() -> None:
    rows = a_sound_run()
    left = [s for s in rows.steps if not (s.kind == "tool_result" and s.turn == 2)]
    assert list(one_tool_call_a_turn(numbered(rows, left), TURNS))


def test_the_checker_finds_tool_calls_out_of_order() -> None:
    rows = a_sound_run()
    tools = rows.of_kind("tool_result")
    swapped = with_step(with_step(rows, tools[0].seq, turn=2), tools[1].seq, turn=1)
    assert list(one_tool_call_a_turn(swapped, TURNS))


@pytest.mark.parametrize(
    ("turns", "losses"),
    [((1, 2, 3, 3, 4), 0), ((1, 1, 2, 2, 3, 4), 1), ((1, 2, 3), 1), ((1, 2, 3, 4, 5), 1)],
    ids=["paid twice without a loss", "paid twice in two places", "recorded without being asked", "never recorded"],
)
def test_the_checker_finds_calls_that_were_not_charged_once(turns: tuple[int, ...], losses: int) -> None:
    requests = [SentRequest("speaker", turn, 100) for turn in turns]
    assert list(check_charged_once(a_sound_run(), requests, losses))


def undisturbed(rows: Rows) -> Rows:
    """The same by one worker alone, in another database."""
    steps = [replace(s, fence=min(s.fence, 1), at=BEGAN) for s in rows.steps if s.kind != "resumed"]
    positions = {s.seq: n for n, s in enumerate(steps, 1)}
    alone = numbered(rows, steps)
    return replace(alone, calls=tuple(replace(c, seq=positions[c.seq]) for c in rows.calls))


A, B = "01980000-0000-7000-8000-00000000000a", "01980000-0000-7000-8000-00000000000b"


def test_a_record_is_the_same_after_any_crash_and_with_any_names_of_rows() -> None:
    rows = a_sound_run()
    at = rows.of_kind("tool_result")[3].seq
    pointing = with_step(rows, at, payload={"source": A, "action": at - 1})
    alone = with_step(undisturbed(rows), at - 1, payload={"source": B, "action": at - 2})
    assert list(same_record(pointing, alone)) == []


OTHERWISE: dict[str, Callable[[Rows], Rows]] = {
    "a call": lambda r: with_step(r, first(r, "tool_result").seq, payload={"args": {"query": "other"}}),
    "an edit": lambda r: with_step(r, first(r, "memory").seq, title="other"),
    "a prompt or completion": lambda r: with_call(r, 2, content="other"),
    "a context": lambda r: with_call(r, 2, segment=0, place=2),
    "a boundary_reason": lambda r: with_segment(r, 1, boundary_reason="compaction"),
    "something left out": lambda r: numbered(r, [s for s in r.steps if s.kind != "memory" or s.turn != 4]),
}


@pytest.mark.parametrize("plant", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_the_checker_finds_what_is_not_as_in_an_undisturbed_run(plant: Callable[[Rows], Rows]) -> None:
    rows = a_sound_run()
    assert list(same_record(plant(rows), undisturbed(rows)))


@pytest.mark.parametrize(
    ("turns", "right"),
    [
        ((1, 2, 3, 4), True),
        ((1, 2, 1, 2, 3, 4), True),
        ((1, 2, 3), False),
        ((1, 1, 1, 2, 3, 4), False),
        ((1, 2, 3, 4, 5), False),
    ],
    ids=["asked once", "asked again", "recorded without being asked", "asked too often", "never recorded"],
)
def test_what_is_done_again_whole_is_asked_once_a_slice(turns: tuple[int, ...], right: bool) -> None:
    requests = [SentRequest("speaker", turn, 100) for turn in turns]
    assert (list(check_repeated_whole(a_sound_run(), requests, losses=1)) == []) is right


def a_whole_group() -> GroupFacts:
    members = tuple(RolloutFacts(n, 1, "done", "answered", 1.0, True, ("exact_match",)) for n in range(3))
    return GroupFacts("complete", BEGAN, 3, ("exact_match",), members)


def with_member(group: GroupFacts, **changes: Any) -> GroupFacts:
    return replace(group, rollouts=(replace(group.rollouts[0], **changes), *group.rollouts[1:]))


def test_the_checker_is_content_with_a_whole_group() -> None:
    assert group_violations(a_whole_group()) == []


@pytest.mark.parametrize(
    "group",
    [
        replace(a_whole_group(), state="open", completed_at=None),
        replace(a_whole_group(), rollouts=a_whole_group().rollouts[1:]),
        replace(a_whole_group(), rollouts=(*a_whole_group().rollouts, a_whole_group().rollouts[0])),
        with_member(a_whole_group(), attempt=2),
        with_member(a_whole_group(), status="running"),
        with_member(a_whole_group(), outcome=None),
        with_member(a_whole_group(), settled=False),
        with_member(a_whole_group(), reward=None),
        with_member(a_whole_group(), scores=()),
        with_member(a_whole_group(), scores=("exact_match", "exact_match")),
    ],
    ids=[
        "open", "a member too few", "a member too many", "a second attempt", "not ended", "no outcome", "not settled",
        "no reward", "not scored", "scored twice",
    ],
)  # fmt: skip
def test_the_checker_finds_what_is_wrong_with_a_group(group: GroupFacts) -> None:
    assert group_violations(group)
