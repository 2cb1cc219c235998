"""Structured output: the JSON schema of a role's output type, and the parser of a model's text.

Parsing is strict: one JSON object of the declared types, or a description of the problem. Nothing
is guessed from prose, so a text is never misread as its opposite.
"""

import json
import re
from typing import Any

from pydantic import BaseModel, ValidationError

from offing.core.model import InvalidOutput
from offing.core.output_problems import describe_problems, render_example
from offing.core.step import shorten_line

Schema = dict[str, Any]

MAX_TEXT_CHARS = 400_000
"""Maximum length of a completion in code points. A longer one is rejected without parsing."""

MAX_EXAMPLE_CHARS = 600
"""Maximum length of the example of an object in an error, in code points."""

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)
_THINK_BLOCK = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_NUL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_UNSUPPORTED_KEYWORDS = frozenset({"title", "default", "examples", "minLength", "maxLength", "format"})
"""Keywords that strict schemas do not support. The parser checks their constraints."""


def parse_output(text: str, output: type[BaseModel]) -> BaseModel | InvalidOutput:
    """Parse one JSON object, bare or in a fenced block, strictly as `output`'s type."""
    object_text = _extract_object(text)
    if isinstance(object_text, InvalidOutput):
        return InvalidOutput(f"{object_text.problem} {_render_form(output)}")
    try:
        _check_unambiguous(object_text)
        return output.model_validate_json(object_text, strict=True)
    except ValidationError as error:
        return InvalidOutput(describe_problems(error))
    except (ValueError, RecursionError) as error:
        problem = f"The text is not one JSON object: {shorten_line(str(error))}."
        return InvalidOutput(f"{problem} {_render_form(output)}")


def to_strict_schema(schema: Schema) -> Schema | None:
    """Convert `schema` to strict structured output: closed objects with all properties required.

    `None` means that parts cannot be closed, such as free-form objects, and the schema must be sent
    unchanged.
    """
    try:
        return _close_node(schema)
    except _OpenSchemaError:
        return None


class _OpenSchemaError(Exception):
    """A part of a schema allows any value."""


def _extract_object(text: str) -> str | InvalidOutput:
    if len(text) > MAX_TEXT_CHARS:
        return InvalidOutput(f"The answer is longer than {MAX_TEXT_CHARS:,} characters.")
    body = _THINK_BLOCK.sub("", text).strip()
    if not body:
        return InvalidOutput("The answer is empty. Give one JSON object.")
    if body.startswith("{"):
        return body
    fenced = _FENCE.findall(body)
    if len(fenced) == 1:
        return fenced[0].strip()
    return InvalidOutput("The answer is not one JSON object. Give the object alone, without any other text.")


def _check_unambiguous(text: str) -> None:
    """Raise ValueError for ambiguous JSON and for NUL.

    Parsers read some JSON differently, and the database cannot store NUL.
    """

    def unique(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise ValueError(f"a key occurs twice among {names[:12]}")

    def number(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    json.loads(text, object_pairs_hook=unique, parse_constant=number)
    if _NUL_ESCAPE.search(text):
        raise ValueError("it holds a NUL character")


def _render_form(output: type[BaseModel]) -> str:
    return f"Its form is: {shorten_line(render_example(output.model_json_schema()), MAX_EXAMPLE_CHARS)}"


def _close_node(node: Schema) -> Schema:
    if (
        not node.keys() - _UNSUPPORTED_KEYWORDS - {"description"}
        or {"oneOf", "prefixItems", "patternProperties"} & node.keys()
    ):
        raise _OpenSchemaError
    supported = {key: value for key, value in node.items() if key not in _UNSUPPORTED_KEYWORDS}
    for key in ("properties", "$defs"):
        if key in supported:
            supported[key] = {name: _close_node(part) for name, part in supported[key].items()}
    if "anyOf" in supported:
        supported["anyOf"] = [_close_node(part) for part in supported["anyOf"]]
    if supported.get("type") == "array":
        supported["items"] = _close_node(supported.get("items", {}))
    return _close_object(supported) if supported.get("type") == "object" else supported


def _close_object(node: Schema) -> Schema:
    if "properties" not in node or node.get("additionalProperties"):
        raise _OpenSchemaError
    return {**node, "required": list(node["properties"]), "additionalProperties": False}
