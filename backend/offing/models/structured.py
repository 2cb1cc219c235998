"""From a role's output type to the schema that a model is shown, and from a model's text back to a value.

The only home of both. Parsing is strict: one JSON object of the declared types, or a problem in words; nothing is
guessed from prose, so a text can never become its opposite.
"""

import json
import re
from typing import Any

from pydantic import BaseModel, ValidationError

from offing.core.model import Unusable
from offing.core.step import shortened

Schema = dict[str, Any]

LONGEST_TEXT = 400_000
"""Code points of an answer; more is refused unread."""

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_NUL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_DROPPED = frozenset({"title", "default", "examples", "minLength", "maxLength", "format"})
"""Keywords that a strict schema may not hold; the parser checks what they said."""


def parse_output(text: str, output: type[BaseModel]) -> BaseModel | Unusable:
    """The value that `text` holds: one JSON object, bare or in one fenced block, strictly of `output`'s types."""
    found = _object_text(text)
    if isinstance(found, Unusable):
        return found
    try:
        _refuse_ambiguity(found)
        return output.model_validate_json(found, strict=True)
    except ValidationError as error:
        return Unusable(_problems(error))
    except (ValueError, RecursionError) as error:
        return Unusable(f"The text is not one JSON object: {shortened(str(error))}")


def strict_schema(schema: Schema) -> Schema | None:
    """`schema` as strict structured output wants it: closed objects, everything required.

    None: it has parts that cannot be closed, such as free-form objects, and must be sent as a plain schema.
    """
    try:
        return _closed(schema)
    except _Open:
        return None


class _Open(Exception):
    """A part of a schema admits anything."""


def _object_text(text: str) -> str | Unusable:
    if len(text) > LONGEST_TEXT:
        return Unusable(f"The answer is longer than {LONGEST_TEXT:,} characters.")
    body = _THOUGHTS.sub("", text).strip()
    if not body:
        return Unusable("The answer is empty. Give one JSON object.")
    if body.startswith("{"):
        return body
    fenced = _FENCE.findall(body)
    if len(fenced) == 1:
        return fenced[0].strip()
    return Unusable("The answer is not one JSON object. Give the object alone, without any other text.")


def _refuse_ambiguity(text: str) -> None:
    """Raises `ValueError` for what parsers read in different ways, and for NUL, which no store keeps."""

    def unique(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise ValueError(f"a key occurs twice among {names[:12]}")

    def number(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    json.loads(text, object_pairs_hook=unique, parse_constant=number)
    if _NUL_ESCAPE.search(text):
        raise ValueError("it holds a NUL character")


def _problems(error: ValidationError) -> str:
    """The first problems, each with its place."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(map(str, d['loc'])) or 'the object'}: {d['msg']}" for d in details[:6]]
    more = [f"and {len(details) - 6} more"] if len(details) > 6 else []
    return "; ".join([*lines, *more])


def _closed(node: Schema) -> Schema:
    if not node.keys() - _DROPPED - {"description"} or {"oneOf", "prefixItems", "patternProperties"} & node.keys():
        raise _Open
    kept = {key: value for key, value in node.items() if key not in _DROPPED}
    for key in ("properties", "$defs"):
        if key in kept:
            kept[key] = {name: _closed(part) for name, part in kept[key].items()}
    if "anyOf" in kept:
        kept["anyOf"] = [_closed(part) for part in kept["anyOf"]]
    if kept.get("type") == "array":
        kept["items"] = _closed(kept.get("items", {}))
    return _closed_object(kept) if kept.get("type") == "object" else kept


def _closed_object(node: Schema) -> Schema:
    if "properties" not in node or node.get("additionalProperties"):
        raise _Open
    return {**node, "required": list(node["properties"]), "additionalProperties": False}
