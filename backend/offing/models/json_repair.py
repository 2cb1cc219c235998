"""Repairs of a JSON object in a model's text: what is around it, its punctuation, and values of a schema.

Every repair is unambiguous. Punctuation is repaired only if all letters and digits stay the same and
the object is closed, so that a truncated answer is never completed.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from json_repair import repair_json

from offing.core.text_repair import CODE_FENCE, PROSE_AROUND, THOUGHTS, RepairedText, remove_code_fence, remove_thoughts
from offing.core.value_repair import repair_value

MAX_OBJECT_STARTS = 50
"""Maximum number of braces at which an object is looked for."""
MAX_REPAIRED_CHARS = 100_000
"""Maximum length of an object whose punctuation is repaired, in code points."""

_ESCAPE = re.compile(r"\\[nrtbf]|\\u[0-9a-fA-F]{4}")
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


def repair_surroundings(text: str) -> RepairedText:
    """Remove thoughts, a code fence and prose around the only JSON object of a text."""
    return (
        RepairedText(text)
        .then(THOUGHTS, remove_thoughts)
        .then(CODE_FENCE, remove_code_fence)
        .then(PROSE_AROUND, _remove_prose)
    )


def repair_object(repaired: RepairedText, schema: Mapping[str, Any]) -> RepairedText:
    """Repair the punctuation of an object, then the values that its schema rejects."""
    repaired = repaired.then("json_syntax", _repair_punctuation)
    try:
        value = json.loads(repaired.text)
    except (ValueError, RecursionError):
        return repaired
    unwrapped = _unwrap(value, schema)
    coerced = repair_value(schema, unwrapped)
    names = (("wrapped",) if unwrapped is not value else ()) + coerced.names
    if not names:
        return repaired
    return RepairedText(json.dumps(coerced.value, ensure_ascii=False), (*repaired.repairs, *names))


def _remove_prose(text: str) -> str:
    """Return the only JSON object of a text. The text is returned unchanged if there is none or several."""
    body = text.strip()
    objects = _find_objects(body)
    if len(objects) > 1:
        return text
    start, end = objects[0] if objects else (body.find("{"), body.rfind("}") + 1)
    return text if start < 0 or end <= start or (start, end) == (0, len(body)) else body[start:end]


def _find_objects(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the outermost objects that are valid JSON."""
    objects: list[tuple[int, int]] = []
    at = text.find("{")
    for _ in range(MAX_OBJECT_STARTS):
        if at < 0:
            break
        try:
            _, end = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        objects.append((at, end))
        at = text.find("{", end)
    return objects


def _repair_punctuation(text: str) -> str:
    if not (text.startswith("{") and text.rstrip().endswith("}")) or len(text) > MAX_REPAIRED_CHARS:
        return text
    try:
        json.loads(text)
    except RecursionError:
        return text
    except ValueError:
        repaired = str(repair_json(text, ensure_ascii=False, skip_json_loads=True))
        return repaired if repaired.startswith("{") and _list_letters(repaired) == _list_letters(text) else text
    return text


def _list_letters(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", _ESCAPE.sub("", text)).casefold()


def _unwrap(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the object within a list of one, or within one field that the schema does not have."""
    if isinstance(value, list):
        items = cast(list[Any], value)
        return cast(Any, items[0] if len(items) == 1 and isinstance(items[0], dict) else items)
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    (name, inner), *others = fields.items() or ((None, None),)
    is_wrapper = not others and isinstance(inner, dict) and name not in schema.get("properties", {})
    return cast(Any, inner if is_wrapper else fields)
