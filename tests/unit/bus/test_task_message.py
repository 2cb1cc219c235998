"""Which bytes on the Redis list are passed on to Celery."""

import base64
import json
from typing import Any

import pytest

from offing.bus.skipped_messages import MAX_EXCERPT_CHARS, SkippedMessages, render_excerpt
from offing.bus.task_message import MAX_MESSAGE_BYTES, find_defect
from offing.clock import new_id

TASK = "offing.advance"


def a_message(**changes: Any) -> dict[str, Any]:
    """As Celery publishes it."""
    body = changes.pop("body", [[str(new_id())], {}, {"callbacks": None, "chain": None}])
    properties = {
        "correlation_id": "c",
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": "offing"},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": "t",
    }
    headers = {"lang": "py", "task": TASK, "id": "c", "eta": None, "expires": None, "retries": 0, "argsrepr": "()"}
    whole = {
        "body": base64.b64encode(json.dumps(body).encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers | changes.pop("headers", {}),
        "properties": properties | changes.pop("properties", {}),
    }
    return {name.replace("_", "-"): value for name, value in {**whole, **changes}.items()}


def raw(**changes: Any) -> bytes:
    return json.dumps(a_message(**changes)).encode()


MALFORMED = {
    "text": b"this is not JSON",
    "bytes": b"\xff\xfe\x00\x80",
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "an empty object": b"{}",
    "nested": b"[" * 50_000,
    "huge": b'"' + b"x" * MAX_MESSAGE_BYTES + b'"',
    "another task": raw(headers={"task": "celery.backend_cleanup"}),
    "a task of another kind": raw(headers={"task": ["offing.advance"]}),
    "no id": raw(headers={"id": None}),
    "for next year": raw(headers={"eta": "2027-11-22T00:00:00"}),
    "expired": raw(headers={"expires": "yesterday"}),
    "compressed": raw(headers={"compression": "application/x-gzip"}),
    "pickle": raw(content_type="application/x-python-serialize"),
    "another charset": raw(content_encoding="utf-32"),
    "another body encoding": raw(properties={"body_encoding": "rot13"}),
    "no delivery tag": raw(properties={"delivery_tag": None}),
    "no place of delivery": raw(properties={"delivery_info": "offing"}),
    "headers that are a list": json.dumps(a_message() | {"headers": []}).encode(),
    "a body that is no base64": json.dumps(a_message() | {"body": "%%%"}).encode(),
    "a body that is no list": raw(body={"args": []}),
    "a short body": raw(body=[[]]),
    "named arguments": raw(body=[[], {"run": "x"}, {}]),
    "an argument that is no id": raw(body=[["../../etc/passwd"], {}, {}]),
    "an argument that is a number": raw(body=[[7], {}, {}]),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_not_ours_has_a_defect(name: str) -> None:
    assert find_defect(MALFORMED[name], TASK)


@pytest.mark.parametrize("runs", [[], [str(new_id())], [str(new_id()) for _ in range(8)]])
def test_what_celery_publishes_for_us_has_none(runs: list[str]) -> None:
    assert find_defect(raw(body=[runs, {}, {}]), TASK) is None


def test_an_excerpt_is_short_printable_and_without_secrets() -> None:
    rendered = render_excerpt(b'\xff\x1b[31m{"api_key": "sk-abcdefghijklmnopqrstuvwx"}' + b"x" * 10_000_000)
    assert len(rendered) <= MAX_EXCERPT_CHARS
    assert rendered.isascii()
    assert rendered.isprintable()
    assert "abcdefghijkl" not in rendered


def test_a_flood_of_malformed_messages_is_reported_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    skipped = SkippedMessages("a test", clock=lambda: now)
    for _ in range(1000):
        skipped.skip("not JSON", b"x")
    now = 2.0
    skipped.skip("not JSON", b"y")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "count=1000" in lines[1]
