"""Evaluation of one condition against one value.

A value that cannot be evaluated raises `UndecidableError`, so that it never meets or misses a
condition by accident.
"""

import math
from collections.abc import Mapping
from typing import Any

from offing.core.tool_policy.hosts_and_paths import is_inside, matches_host
from offing.core.tool_policy.pattern import ANY_CHARACTER, ANY_TEXT, compile_pattern, split_glob
from offing.core.tool_policy.rules import Condition, Scalar

MAX_MATCHED_CHARS = 4_096
"""Maximum number of code points of a value for a glob or a regular expression.

A longer value is undecidable.
"""
MAX_ARGS_DEPTH = 16
"""Maximum nesting depth of a call's arguments."""
MAX_ARGS_SIZE = 65_536
"""Maximum number of values and code points of a call's arguments together."""


class UndecidableError(Exception):
    """A condition cannot be evaluated for this value."""


def explain_mismatch(condition: Condition, value: Any, *, grants: bool) -> str:
    """Explain why a value does not meet a condition. An empty string means that it does.

    With `grants`, the condition belongs to an allow rule and is evaluated as narrowly as possible;
    conditions of other rules are evaluated widely. Raises UndecidableError.
    """
    if not condition.items:
        return _explain_value(condition, value, grants)
    if not isinstance(value, list):
        raise UndecidableError("It is not a list.")
    complaints = [_explain_value(condition, item, grants) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if grants:
        return next((f"one of its items: {c}" for c in complaints if c), "")
    return "" if "" in complaints else "none of its items is meant."


def _explain_value(condition: Condition, value: Any, grants: bool) -> str:
    if condition.one_of is not None and not any(_is_equal(value, allowed) for allowed in condition.one_of):
        return "it is none of the values that are allowed."
    return _explain_text(condition, value, grants) or _explain_size(condition, value)


def _explain_text(condition: Condition, value: Any, grants: bool) -> str:
    if condition.glob is not None and not _matches_glob(split_glob(condition.glob), _require_text(value)):
        return "it does not have the form that is allowed."
    if condition.regex is not None and not compile_pattern(condition.regex, not grants).matches(_require_text(value)):
        return "it does not have the form that is allowed."
    return _explain_host_or_path(condition, value, grants)


def _explain_host_or_path(condition: Condition, value: Any, grants: bool) -> str:
    if condition.host is not None:
        at = matches_host(_require_text(value), condition.host, any_port=not grants)
        if not _require_decidable(at, "address"):
            return "it is at no host that is allowed."
    if condition.path is not None:
        lies = is_inside(_require_text(value), condition.path, strict=grants)
        if not _require_decidable(lies, "path"):
            return f"it does not lie in {condition.path}."
    return ""


def _explain_size(condition: Condition, value: Any) -> str:
    if condition.min_length is not None and _measure_length(value) < condition.min_length:
        return f"it must have a length of at least {condition.min_length}."
    if condition.max_length is not None and _measure_length(value) > condition.max_length:
        return f"it must have a length of at most {condition.max_length}."
    if condition.minimum is not None and _require_number(value) < condition.minimum:
        return f"it must be at least {condition.minimum}."
    if condition.maximum is not None and _require_number(value) > condition.maximum:
        return f"it must be at most {condition.maximum}."
    return ""


def _require_decidable(answer: bool | None, noun: str) -> bool:
    if answer is None:
        raise UndecidableError(f"It is no {noun} that can be judged.")
    return answer


def _is_equal(value: Any, allowed: Scalar) -> bool:
    """Return whether two values are equal in JSON: true is not 1, "1" is not 1, and 1.0 is 1."""
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    if isinstance(value, int | float) and isinstance(allowed, int | float):
        return value == allowed
    return type(value) is type(allowed) and value == allowed


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise UndecidableError("It is not text.")
    if len(value) > MAX_MATCHED_CHARS:
        raise UndecidableError("It is too long to be judged.")
    return value


def _measure_length(value: Any) -> int:
    if not isinstance(value, str | list):
        raise UndecidableError("It is neither text nor a list.")
    return len(value)  # pyright: ignore[reportUnknownArgumentType]


def _require_number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UndecidableError("It is not a number.")
    return value


def _matches_glob(glob: tuple[str, ...], value: str) -> bool:
    """Match the whole text against a glob.

    Backtracking goes only to the last star, so the number of steps is at most the product of both
    lengths.
    """
    at = g = 0
    star, mark = -1, 0
    while at < len(value):
        if g < len(glob) and glob[g] == ANY_TEXT:
            star, mark, g = g, at, g + 1
        elif g < len(glob) and glob[g] in (ANY_CHARACTER, value[at]):
            at, g = at + 1, g + 1
        elif star >= 0:
            mark += 1
            at, g = mark, star + 1
        else:
            return False
    return all(part == ANY_TEXT for part in glob[g:])


def check_args(args: Mapping[str, Any]) -> None:
    """Check that the arguments are JSON of a bounded size with storable text. Raises UndecidableError."""
    remaining = MAX_ARGS_SIZE
    waiting: list[tuple[Any, int]] = [(dict(args), 0)]
    while waiting:
        value, depth = waiting.pop()
        remaining -= 1 + (len(value) if isinstance(value, str) else 0)
        if remaining < 0 or depth > MAX_ARGS_DEPTH:
            raise UndecidableError("The arguments are too large to be judged.")
        waiting += [(inner, depth + 1) for inner in _list_children(value)]


def _list_children(value: Any) -> list[Any]:
    """Return the direct children of a JSON value. Raises UndecidableError if it is not JSON."""
    match value:
        case dict():
            return [*value.keys(), *value.values()] if all(isinstance(k, str) for k in value) else _raise_not_json()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        case list():
            return list(value)  # pyright: ignore[reportUnknownArgumentType]
        case str():
            return [] if _is_storable(value) else _raise_not_json()
        case bool() | int() | None:
            return []
        case float() if math.isfinite(value):
            return []
        case _:
            return _raise_not_json()


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def _raise_not_json() -> list[Any]:
    raise UndecidableError("The arguments are not JSON that can be kept.")
