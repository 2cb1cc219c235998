"""Fields of an output whose values are one of few: in the schema, and when an output is checked."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel

from offing.core.json_schema import as_mapping, as_sequence, resolve_reference
from offing.core.model import InvalidOutput
from offing.core.step import shorten_line
from offing.core.value_repair import find_nearest
from offing.sdk.role import OutputChoice

REPAIR = "choice"
"""Name of the repair that replaces a value by the only one that it resembles."""
MAX_LISTED = 40
"""Maximum number of values that an error lists."""


def add_choices(schema: Mapping[str, Any], choices: Iterable[OutputChoice]) -> dict[str, Any]:
    """Return a schema in which the fields of the choices are enumerations.

    A field that may be empty keeps the empty text as a value.
    """
    changed = copy.deepcopy(dict(schema))
    for choice in choices:
        if choice.values and (node := _find_node(changed, choice.path.split("."))) is not None:
            empty = [""] if "default" in node and node["default"] == "" else []
            node["enum"] = [*choice.values, *empty]
            node.pop("minLength", None)
    return changed


def check_choices(
    output: BaseModel, choices: Iterable[OutputChoice]
) -> tuple[BaseModel, tuple[str, ...]] | InvalidOutput:
    """Return the output with the values that are meant, and the names of the repairs.

    A required choice that no value resembles gives an InvalidOutput, which lists the values.
    """
    fields, is_repaired = output.model_dump(mode="python"), False
    for choice in choices:
        for path, value, replace in _list_values(fields, choice.path.split("."), ""):
            if not value or value in choice.values:
                continue
            if (meant := find_nearest(value, choice.values)) is not None:
                replace(meant)
                is_repaired = True
            elif choice.is_required:
                return InvalidOutput(_describe_problem(path, value, choice.values))
    return (type(output).model_validate(fields), (REPAIR,)) if is_repaired else (output, ())


def _describe_problem(path: str, value: str, values: tuple[str, ...]) -> str:
    names = ", ".join(values[:MAX_LISTED]) or "none"
    return f'{path}: there is no "{shorten_line(value, 80)}". Use exactly one of: {names}.'


def _find_node(schema: dict[str, Any], path: list[str]) -> dict[str, Any] | None:
    """Return the part of the schema that describes the field, to be changed in place."""
    node: dict[str, Any] | None = schema
    for name in path:
        node = _resolve(schema, node)
        if node is None:
            return None
        node = node.get("items") if name == "*" else as_mapping(node.get("properties")).get(name)
    return _resolve(schema, node)


def _resolve(root: dict[str, Any], node: Any) -> dict[str, Any] | None:
    """Follow references, and the only alternative besides null."""
    for _ in range(20):
        if not isinstance(node, dict):
            return None
        fields = cast(dict[str, Any], node)
        if "$ref" in fields:
            node = resolve_reference(root, fields["$ref"])
        elif options := [one for one in as_sequence(fields.get("anyOf")) if as_mapping(one).get("type") != "null"]:
            if len(options) != 1:
                return None
            node = options[0]
        else:
            return fields
    return None


def _list_values(node: Any, path: list[str], location: str) -> list[tuple[str, str, Callable[[str], None]]]:
    """Return the location, value and setter of each text that the path leads to."""
    name, *rest = path
    if name == "*":
        items = list(cast(Iterable[Any], node)) if isinstance(node, list | tuple) else []
        return [one for n, item in enumerate(items) for one in _list_values(item, rest, f"{location}[{n}]")]
    if not isinstance(node, dict) or name not in node:
        return []
    fields = cast(dict[str, Any], node)
    where = f"{location}.{name}" if location else name
    if rest:
        return _list_values(fields[name], rest, where)
    value = fields[name]

    def replace(meant: str) -> None:
        fields[name] = meant

    return [(where, value, replace)] if isinstance(value, str) else []
