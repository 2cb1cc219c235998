"""Sentences about an invalid value, for a model that will write it again: where, what was there, what is expected."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from offing.core.json_schema import as_mapping, as_sequence, resolve_reference
from offing.core.step import shorten_line

MAX_PROBLEMS = 6
MAX_SHOWN_CHARS = 60
"""Maximum number of code points of a wrong value that a sentence shows."""
MAX_EXAMPLE_DEPTH = 6

_EXPECTED = {
    "missing": "is missing",
    "extra_forbidden": "is not a field here; leave it out",
}


def describe_problems(error: ValidationError, whole: str = "the object") -> str:
    """Describe the first problems in sentences. `whole` names the value in a problem that belongs to no field."""
    details = error.errors(include_url=False, include_context=False)
    problems = [_describe_problem(one, whole) for one in details[:MAX_PROBLEMS]]
    more = [f"And {len(details) - MAX_PROBLEMS} more."] if len(details) > MAX_PROBLEMS else []
    return " ".join([*problems, *more])


def render_example(schema: Mapping[str, Any]) -> str:
    """Return JSON of the form that a schema describes, on one line, with a word in place of each value."""
    return json.dumps(_build_example(schema, schema, 0), ensure_ascii=False)


def _describe_problem(detail: ErrorDetails, whole: str) -> str:
    location = render_location(detail["loc"]) or whole
    if expected := _EXPECTED.get(detail["type"]):
        return f"{location}: {expected}."
    message = detail["msg"].removeprefix("Value error, ").rstrip(".")
    if not detail["loc"]:
        return f"{location}: {message}."
    return f"{location}: {message}, but there was {_show_value(detail['input'])}."


def render_location(location: tuple[int | str, ...]) -> str:
    """Return the path of a field, such as `coverage[0].covered`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


def _show_value(value: object) -> str:
    try:
        return shorten_line(json.dumps(value, ensure_ascii=False), MAX_SHOWN_CHARS)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def _build_example(root: Mapping[str, Any], schema: Any, depth: int) -> Any:
    fields = as_mapping(schema)
    if depth > MAX_EXAMPLE_DEPTH:
        return "…"
    if "$ref" in fields:
        return _build_example(root, resolve_reference(root, fields["$ref"]), depth + 1)
    if options := as_sequence(fields.get("anyOf")):
        return _build_example(root, options[0], depth + 1)
    if choices := as_sequence(fields.get("enum")):
        return choices[0]
    if examples := as_sequence(fields.get("examples")):
        return examples[0]
    if fields.get("type") == "object":
        inner = as_mapping(fields.get("properties"))
        return {name: _build_example(root, one, depth + 1) for name, one in inner.items()}
    if fields.get("type") == "array":
        return [_build_example(root, fields.get("items"), depth + 1)]
    return {"integer": 1, "number": 0.5, "boolean": False, "null": None}.get(str(fields.get("type")), "…")
