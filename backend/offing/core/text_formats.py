"""Check a text against the `format` and the `pattern` of a JSON schema.

A pattern comes from a graph and could be made slow, so it is matched in linear time. One that is beyond the subset of
`offing.core.tool_policy.pattern` does not restrict a text.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.tool_policy.pattern import Pattern, compile_pattern

MAX_TEXT_CHARS = 500
"""Maximum length of a text that is matched against a pattern."""

ANY_TEXT_REGEX = r"[\s\S]*"


def _is_date(text: str) -> bool:
    return len(text) == len("2026-01-31") and bool(date.fromisoformat(text))


def _is_date_time(text: str) -> bool:
    return len(text) > len("2026-01-31T") and bool(datetime.fromisoformat(text))


_FORMATS: dict[str, tuple[str, Callable[[str], object]]] = {
    "date": ("a date, such as 2026-01-31", _is_date),
    "date-time": ("a date and a time, such as 2026-01-31T15:00:00Z", _is_date_time),
    "time": ("a time, such as 15:00:00", time.fromisoformat),
    "uuid": ("a UUID", UUID),
    "email": ("an email address", re.compile(r"[^@\s]+@[^@\s]+").fullmatch),
    "uri": ("an address with its scheme, such as https://example.org", re.compile(r"[A-Za-z][\w+.-]*:\S+").fullmatch),
}


def check_text(schema: Mapping[str, Any], text: str, field: str) -> None:
    """Raise InvalidInput if a text does not have the schema's format or does not match its pattern."""
    named = schema.get("format")
    if isinstance(named, str) and named in _FORMATS and not _is_format(named, text):
        raise InvalidInput(field, f"must be {_FORMATS[named][0]}", "Use this format.")
    pattern = compile_search(schema.get("pattern")) if len(text) <= MAX_TEXT_CHARS else None
    if pattern is not None and not pattern.matches(text):
        raise InvalidInput(field, f"does not match the pattern {schema['pattern']}", "Use a text that matches it.")


def compile_search(pattern: object) -> Pattern | None:
    """Compile a pattern to one that matches the whole text if the text contains a match.

    `None` means that the pattern is outside the subset.
    """
    if not isinstance(pattern, str):
        return None
    begins, ends = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith(r"\$")
    inner = pattern[begins : len(pattern) - ends]
    if (begins or ends) and _has_alternatives(inner):
        return None  # an anchor applies to only one of the alternatives
    try:
        return compile_pattern(f"{'' if begins else ANY_TEXT_REGEX}({inner}){'' if ends else ANY_TEXT_REGEX}", True)
    except ValueError:
        return None


def _has_alternatives(pattern: str) -> bool:
    """Return whether the pattern has a `|` outside of all groups."""
    bare = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "", pattern, flags=re.DOTALL)
    while (fewer := re.sub(r"\([^()]*\)", "", bare)) != bare:
        bare = fewer
    return "|" in bare


def _is_format(format_name: str, text: str) -> bool:
    try:
        return bool(_FORMATS[format_name][1](text))
    except ValueError:
        return False
