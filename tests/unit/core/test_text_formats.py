"""Texts are held against formats and patterns; no pattern takes long."""

import time
from contextlib import suppress

import pytest
from pydantic import BaseModel, Field

from offing.core.errors import InvalidInput
from offing.core.json_schema import check_value
from offing.core.text_formats import compile_search


@pytest.mark.parametrize(
    ("named", "right", "wrong"),
    [
        ("date", "2026-01-31", "2026-02-31"),
        ("date", "2026-01-31", "20260131"),
        ("date-time", "2026-01-31T15:00:00Z", "2026-01-31"),
        ("date-time", "2026-01-31 15:00", "tomorrow at three"),
        ("time", "15:00:00", "25:00"),
        ("uuid", "018f3c1e-0000-7000-8000-000000000000", "018f"),
        ("email", "ada@example.org", "ada at home"),
        ("uri", "https://example.org", "example.org"),
    ],
)
def test_a_format_is_checked_and_shown(named: str, right: str, wrong: str) -> None:
    schema = {"type": "string", "format": named}
    check_value(schema, right, "text")
    with pytest.raises(InvalidInput, match=r"^text: must be an? "):
        check_value(schema, wrong, "text")


def test_a_format_that_is_not_known_restricts_nothing() -> None:
    check_value({"format": "phone"}, "anything", "text")
    check_value({"format": "date", "pattern": "^a"}, 7, "text")


class Booking(BaseModel):
    code: str = Field(pattern=r"^[A-Z]{3}-\d{2,4}$")


def test_a_pattern_of_a_model_is_checked() -> None:
    schema = Booking.model_json_schema()
    check_value(schema, {"code": "ABC-123"}, "text")
    for wrong in ("abc-123", "ABC-1", "ABC-123\n", "xABC-123"):
        with pytest.raises(InvalidInput, match=r"text\.code: does not match the pattern"):
            check_value(schema, {"code": wrong}, "text")


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ("a", "bab", "bob"),
        ("^a", "ab", "ba"),
        ("a$", "ba", "ab"),
        (r"a\$", "a$b", "ba"),
        ("^(yes|no)$", "no", "nor"),
        ("yes|no", "nor", "maybe"),
        ("^[|]$", "|", "a"),
        ("(a+)+$", "baa", "aab"),
        ("^.$", "\n", "ab"),
    ],
)
def test_a_pattern_is_searched_for_in_the_text(pattern: str, right: str, wrong: str) -> None:
    check_value({"pattern": pattern}, right, "text")
    with pytest.raises(InvalidInput, match="does not match the pattern"):
        check_value({"pattern": pattern}, wrong, "text")


@pytest.mark.parametrize("pattern", [r"(\w+)\1", "(?=a)", "a" * 501, "[", r"\b", "a**", "^a|b$", "^(a)|(b)", "a^", 7])
def test_a_pattern_beyond_the_subset_restricts_nothing(pattern: object) -> None:
    check_value({"pattern": pattern}, "!", "text")


@pytest.mark.parametrize("pattern", [r"^\w+@\w+$", "[^ab]*c*d", ".{0,99}.{0,99}x", "(a+)+b", "(a|a)*b", "a?a?a?aaa"])
def test_no_pattern_takes_long(pattern: str) -> None:
    assert compile_search(pattern) is not None
    begun = time.thread_time()
    for text in ("a" * 500, "1" * 500, "x" * 50_000):
        with suppress(InvalidInput):
            check_value({"items": {"pattern": pattern}}, [text] * 150, "text")
    assert time.thread_time() - begun < 10


def test_the_number_of_matched_patterns_is_limited() -> None:
    schema = {"items": {"pattern": "^a"}}
    check_value(schema, ["a"] * 150, "text")
    with pytest.raises(InvalidInput, match="too large"):
        check_value(schema, ["a"] * 250, "text")


def test_alternatives_with_slow_patterns_are_given_up() -> None:
    begun = time.thread_time()
    with pytest.raises(InvalidInput):
        check_value({"anyOf": [{"pattern": "a*a*b"}] * 15_000}, "a" * 200, "text")
    assert time.thread_time() - begun < 10
