"""Check a text against the `format` and the `pattern` of a JSON schema.

A pattern comes from a graph and could be made slow. Patterns of characters, classes and a few quantifiers are checked;
those with groups or alternatives are not.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

from offing.core.errors import InvalidInput

MAX_PATTERN_CHARS = 200
MAX_TEXT_CHARS = 200
"""Longer texts are not held against a pattern."""

MAX_VARIABLE_PARTS = 2
"""Quantifiers that match a varying number of characters. Each one multiplies the time by the length of the text."""

_PART = re.compile(
    r"(?:\\[dDwWsS]|\\[^A-Za-z0-9]|\[\^?(?:\\.|[^\[\]\\])+\]|[^\\\[\](){}|*+?])(?:\{(\d{1,3})\}|(\{\d{0,3},\d{0,3}\}|[*+?]))?"
)


def _is_date(text: str) -> bool:
    return len(text) == len("2026-01-31") and bool(date.fromisoformat(text))


def _is_moment(text: str) -> bool:
    return len(text) > len("2026-01-31T") and bool(datetime.fromisoformat(text))


_FORMATS: dict[str, tuple[str, Callable[[str], object]]] = {
    "date": ("a date, such as 2026-01-31", _is_date),
    "date-time": ("a date and a time, such as 2026-01-31T15:00:00Z", _is_moment),
    "time": ("a time, such as 15:00:00", time.fromisoformat),
    "uuid": ("a UUID", UUID),
    "email": ("an email address", re.compile(r"[^@\s]+@[^@\s]+").fullmatch),
    "uri": ("an address with its scheme, such as https://example.org", re.compile(r"[A-Za-z][\w+.-]*:\S+").fullmatch),
}


def check_text(schema: Mapping[str, Any], text: str, field: str) -> None:
    """Raise InvalidInput for a text that is not of the schema's format or does not match its pattern."""
    named = schema.get("format")
    if isinstance(named, str) and named in _FORMATS and not _is_of(named, text):
        raise InvalidInput(field, f"must be {_FORMATS[named][0]}", "Send it in this form.")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and len(text) <= MAX_TEXT_CHARS and is_simple(pattern) and not _matches(pattern, text):
        raise InvalidInput(field, f"does not match the pattern {pattern}", "Send a text that matches it.")


def is_simple(pattern: str) -> bool:
    """Whether matching cannot take long: no groups, and few parts that match a varying number of characters."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return False
    at, variable = 0, 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None:
            return False
        at, variable = part.end(), variable + (part[2] is not None)
    return variable <= MAX_VARIABLE_PARTS


def _matches(pattern: str, text: str) -> bool:
    try:
        # As in other languages, `$` is the end of the text, and not of its last line.
        return re.search(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), text) is not None
    except re.error:
        return True


def _is_of(named: str, text: str) -> bool:
    try:
        return bool(_FORMATS[named][1](text))
    except ValueError:
        return False
