"""One condition against one value: the only home of what each condition means. It knows no rule and no order of rules.

A value that cannot be judged raises `Unjudged`, and never counts as meeting or as missing a condition by accident.
"""

import math
from collections.abc import Mapping
from typing import Any

from offing.core.policy.pattern import ANY_CHARACTER, ANY_TEXT, compiled, glob_parts
from offing.core.policy.places import at_host, inside
from offing.core.policy.rules import Condition, Scalar

LONGEST_MATCHED = 4_096
"""Code points of a value that a glob or a regular expression is tried on; a longer one cannot be judged."""
DEEPEST = 16
"""Nesting of a call's arguments."""
LARGEST = 65_536
"""Values and code points of a call's arguments together."""


class Unjudged(Exception):
    """A condition cannot be tried on this value."""


def complaint(condition: Condition, value: Any, *, grants: bool) -> str:
    """Why a value does not meet a condition. Empty: it does. Raises Unjudged.

    `grants`: the condition is an allow rule's, and is read as narrowly as it can be; another rule's is read widely.
    """
    if not condition.items:
        return _complaint(condition, value, grants)
    if not isinstance(value, list):
        raise Unjudged("It is not a list.")
    complaints = [_complaint(condition, item, grants) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if grants:
        return next((f"one of its items: {c}" for c in complaints if c), "")
    return "" if "" in complaints else "none of its items is meant."


def _complaint(condition: Condition, value: Any, grants: bool) -> str:
    if condition.one_of is not None and not any(_same(value, allowed) for allowed in condition.one_of):
        return "it is none of the values that are allowed."
    return _of_text(condition, value, grants) or _of_size(condition, value)


def _of_text(condition: Condition, value: Any, grants: bool) -> str:
    if condition.glob is not None and not _matches(glob_parts(condition.glob), _text(value)):
        return "it does not have the form that is allowed."
    if condition.regex is not None and not compiled(condition.regex, not grants).matches(_text(value)):
        return "it does not have the form that is allowed."
    return _of_place(condition, value, grants)


def _of_place(condition: Condition, value: Any, grants: bool) -> str:
    if condition.host is not None:
        at = at_host(_text(value), condition.host, any_port=not grants)
        if not _judged(at, "address"):
            return "it is at no host that is allowed."
    if condition.path is not None:
        lies = inside(_text(value), condition.path, strict=grants)
        if not _judged(lies, "path"):
            return f"it does not lie in {condition.path}."
    return ""


def _of_size(condition: Condition, value: Any) -> str:
    if condition.min_length is not None and _length(value) < condition.min_length:
        return f"it must have a length of at least {condition.min_length}."
    if condition.max_length is not None and _length(value) > condition.max_length:
        return f"it must have a length of at most {condition.max_length}."
    if condition.minimum is not None and _number(value) < condition.minimum:
        return f"it must be at least {condition.minimum}."
    if condition.maximum is not None and _number(value) > condition.maximum:
        return f"it must be at most {condition.maximum}."
    return ""


def _judged(answer: bool | None, what: str) -> bool:
    if answer is None:
        raise Unjudged(f"It is no {what} that can be judged.")
    return answer


def _same(value: Any, allowed: Scalar) -> bool:
    """Equal in JSON: true is not 1, "1" is not 1, and 1.0 is 1."""
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    if isinstance(value, int | float) and isinstance(allowed, int | float):
        return value == allowed
    return type(value) is type(allowed) and value == allowed


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unjudged("It is not text.")
    if len(value) > LONGEST_MATCHED:
        raise Unjudged("It is too long to be judged.")
    return value


def _length(value: Any) -> int:
    if not isinstance(value, str | list):
        raise Unjudged("It is neither text nor a list.")
    return len(value)  # pyright: ignore[reportUnknownArgumentType]


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unjudged("It is not a number.")
    return value


def _matches(glob: tuple[str, ...], value: str) -> bool:
    """The whole text against a glob, by going back to the last star only: at most length times length of steps."""
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


def well_formed(args: Mapping[str, Any]) -> None:
    """Only JSON, of a bounded size, whose text can be stored. Raises Unjudged."""
    left = LARGEST
    waiting: list[tuple[Any, int]] = [(dict(args), 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1 + (len(value) if isinstance(value, str) else 0)
        if left < 0 or depth > DEEPEST:
            raise Unjudged("The arguments are too large to be judged.")
        waiting += [(inner, depth + 1) for inner in _inner(value)]


def _inner(value: Any) -> list[Any]:
    """What a JSON value holds. Raises for what is none."""
    match value:
        case dict():
            return [*value.keys(), *value.values()] if all(isinstance(k, str) for k in value) else _no_json()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        case list():
            return list(value)  # pyright: ignore[reportUnknownArgumentType]
        case str():
            return [] if _storable(value) else _no_json()
        case bool() | int() | None:
            return []
        case float() if math.isfinite(value):
            return []
        case _:
            return _no_json()


def _storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def _no_json() -> list[Any]:
    raise Unjudged("The arguments are not JSON that can be kept.")
