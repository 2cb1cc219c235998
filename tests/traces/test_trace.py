"""What a trace leaves out, and that it leaves out no more than that."""

from typing import Any
from uuid import uuid4

from tests.traces import files
from tests.traces.case_runner import Crash
from tests.traces.files import Outcome, Recorded, in_words
from tests.traces.trace import Left, Trace, differences, read_back, trace_of


def step(seq: int, kind: str = "tool", superstep: int | None = 1, path: str = "a", **more: Any) -> dict[str, Any]:
    bare: dict[str, Any] = {
        "label": kind,
        "title": "",
        "detail": "",
        "ok": True,
        "turn": 1,
        "tokens": 0,
        "ordinal": 0,
        "payload": {},
    }
    return {**bare, "seq": seq, "kind": kind, "superstep": superstep, "path": path, **more}


def call(seq: int, segment: int | None = 0, **more: Any) -> dict[str, Any]:
    bare: dict[str, Any] = {
        "role": "writer",
        "prompt": [],
        "failed_attempts": [],
        "action_key": "k",
        "completion": "said",
    }
    return {**bare, "seq": seq, "segment_idx": segment, **more}


def left(*steps: dict[str, Any], **more: list[dict[str, Any]]) -> Left:
    names = ("role_calls", "segments", "reports", "citations", "intents", "input_requests", "checkpoints", "children")
    return Left({"run": [{"status": "done"}], "steps": list(steps), **{name: more.get(name, []) for name in names}})


def trace(*steps: dict[str, Any], **more: list[dict[str, Any]]) -> Trace:
    return trace_of([left(*steps, **more)], [], [])


def lost_row(seq: int) -> dict[str, Any]:
    return step(seq, "resumed", None, payload={"after": "lost worker", "read_back": 3})


def test_branches_side_by_side_stand_in_the_order_of_their_paths() -> None:
    one = trace(step(1, path="b"), step(2, path="a"), step(3, superstep=2))
    assert one == trace(step(1, path="a"), step(2, path="b"), step(3, superstep=2))
    assert one != trace(step(1, superstep=2), step(2, path="b"), step(3, path="a"))


def test_a_resumption_moves_no_name_and_is_counted() -> None:
    calm = trace(step(1), step(2, payload={"of": 1}))
    assert trace(lost_row(1), step(2), lost_row(3), step(4, payload={"of": 2})) == calm
    assert trace(step(1), step(2, payload={"of": 2})) != calm
    assert read_back([left(lost_row(1), step(2), lost_row(3))]) == [3, 3]


def test_a_resumption_by_a_person_is_a_step() -> None:
    assert len(trace(step(1, "resumed", None, path=""))["runs"][0]["steps"]) == 1


def test_ids_are_numbered_as_they_are_named() -> None:
    one, other = str(uuid4()), str(uuid4())
    assert trace(step(1, title=f"{one} {other} {one}")) == trace(step(1, title=f"{other} {one} {other}"))
    assert trace(step(1, title=f"{one} {one}")) != trace(step(1, title=f"{one} {other}"))


def test_a_path_loses_the_hash_of_what_was_asked_and_a_payload_its_durations() -> None:
    assert trace(step(1, path="a#12", payload={"x": {"ms": 3}})) == trace(
        step(1, path="a#34", payload={"x": {"ms": 4}})
    )
    assert trace(step(1, path="a#12")) != trace(step(1, path="b#12"))


def test_segments_are_numbered_by_the_calls_that_begin_them() -> None:
    steps = (step(1, path="a"), step(2, path="b"))
    rows = [{"idx": n, "role": "writer", "parent_idx": n - 1 if n else None, "parent_tokens": None} for n in (0, 1)]
    one = trace(*steps, role_calls=[call(1, 0), call(2, 1, completion="other")], segments=rows)
    assert one == trace(*steps, role_calls=[call(1, 1), call(2, 0, completion="other")], segments=rows)
    assert one != trace(*steps, role_calls=[call(1, 0), call(2, 0, completion="other")], segments=rows)


def test_a_long_text_is_told_apart_by_its_end() -> None:
    assert trace(step(1, title=f"{'long' * 100} end")) != trace(step(1, title=f"{'long' * 100} End"))


def test_the_first_difference_is_said_in_words() -> None:
    calm, other = trace(step(1), step(2)), trace(step(1, tokens=7), step(2))
    assert in_words(differences(other, calm)) == "run 0, steps: tool 1 tokens was 0 and is 7"
    assert in_words(differences(trace(step(1)), calm)).startswith("run 0, steps: missing: ")
    assert differences(calm, calm) == []


def test_what_was_recorded_is_read_as_it_was_written(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    crashes = [Crash("before", 1), Crash("before", 2), Crash("before", 4), Crash("after", 1)]
    counts = {crash: [crash.at] for crash in crashes} | {Crash("before", 3): list[int]()}
    outcomes = [Outcome(crashes, []), Outcome([Crash("before", 3)], [{"where": "effects"}])]
    recorded = Recorded("a case, exit", {"runs": []}, 4, outcomes, counts)
    files.write(recorded)
    assert files.read("a case, exit") == recorded
