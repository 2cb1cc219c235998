"""A server's JSON schema of arguments as a type of our own, or why it cannot be judged.

The only home of which schemas are judged: objects, lists, texts, numbers, choices, and what may be null, within bounds.
A keyword that would narrow what is accepted in a way that is not known here refuses the tool, except for `pattern` and
`format`, which the server is left to judge, because a pattern can be made slow.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, create_model, model_serializer

from offing.core.blocks import plain
from offing.core.step import shortened

DEEPEST = 5
MOST_PARTS = 200
"""Properties, items and choices of a schema, all together."""
MOST_PROPERTIES = 40
LONGEST_CHOICE = 64
LONGEST_TOLD = 200
"""Code points of an argument's description."""
LONGEST_TEXT = 20_000
MOST_ITEMS = 200
LARGEST_NUMBER = 2**53

_NOTES = frozenset(
    ("$comment", "$id", "$schema", "default", "deprecated", "description", "examples", "format", "pattern", "readOnly")
) | {"title", "writeOnly", "contentEncoding", "contentMediaType", "$defs", "definitions"}
_KNOWN = {
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set[str](),
    "array": {"items", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties"},
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Unjudged(Exception):
    """`Unjudged(problem)`: why a schema is refused."""


class McpArgs(BaseModel):
    """Arguments of a server's tool. What was not given is not sent, and no policy sees it."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        whole: dict[str, Any] = handler(self)
        return {name: value for name, value in whole.items() if name in self.model_fields_set}


def judged(schema: Mapping[str, Any]) -> type[McpArgs]:
    """Arguments that the schema allows. Raises Unjudged."""
    reader = _Reader(schema)
    whole = reader.resolved(schema)
    if whole.get("type") != "object":
        raise Unjudged("its arguments are not an object")
    return reader.arguments(whole, 0, free=True)


class _Reader:
    """One schema, with its definitions and what is left of its bounds."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole, self._left = whole, MOST_PARTS

    def resolved(self, part: Any) -> Mapping[str, Any]:
        """Follows references within the schema, a few at most."""
        for _ in range(DEEPEST):
            found = _mapping(part)
            if "$ref" not in found:
                return found
            if not set(found) <= _NOTES | {"$ref"}:
                raise Unjudged("a reference stands beside other conditions")
            part = self._defined(found["$ref"])
        raise Unjudged("its references go round in circles")

    def _defined(self, reference: object) -> Any:
        match = re.fullmatch(r"#/(\$defs|definitions)/([A-Za-z0-9_.-]+)", str(reference))
        if match is None:
            raise Unjudged("a reference leads out of the schema")
        try:
            return self._whole[match[1]][match[2]]
        except (KeyError, TypeError):
            raise Unjudged("a reference leads nowhere") from None

    def arguments(self, part: Mapping[str, Any], depth: int, *, free: bool = False) -> type[McpArgs]:
        """`free`: an object without properties is one without arguments, not one of any kind."""
        self._check(part, "object")
        named = _mapping(part.get("properties", {}))
        required = _sequence(part.get("required", ()))
        if not named and not free:
            raise Unjudged("an object in it may hold anything")
        if len(named) > MOST_PROPERTIES or not set(required) <= set(named):
            raise Unjudged("it has too many arguments, or asks for some that it does not name")
        if isinstance(part.get("additionalProperties"), dict):
            raise Unjudged("an object in it may have any names")
        fields = {name: self._field(name, inner, depth, name in required) for name, inner in named.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a name such as `schema` hides a method that nobody calls
            return create_model("Arguments", __base__=McpArgs, **cast(dict[str, Any], fields))

    def _field(self, name: str, part: Any, depth: int, required: bool) -> tuple[Any, Any]:
        if not _NAME.fullmatch(name) or name.startswith("model_"):
            raise Unjudged(f"an argument is called {shortened(plain(name), 40)!r}")
        found = self.resolved(part)
        told = shortened(plain(str(found.get("description", ""))), LONGEST_TOLD) or None
        kind, bounds = self._kind(found, depth + 1)
        return kind, Field(... if required else None, description=told, **bounds)

    def _kind(self, part: Mapping[str, Any], depth: int) -> tuple[Any, dict[str, Any]]:
        """The type of a value, and its bounds."""
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise Unjudged("its schema is too large or too deep")
        if "enum" in part or "const" in part:
            return self._choice(part), {}
        if (inner := self._or_null(part)) is not None:
            kind, bounds = self._kind(self.resolved(inner), depth)
            return _bounded(kind, bounds) | None, {}
        match part.get("type"):
            case "object":
                return self.arguments(part, depth), {}
            case "array":
                return self._array(part, depth)
            case "string" | "integer" | "number" | "boolean" as name:
                self._check(part, name)
                return _SIMPLE[name], _bounds(name, part)
            case _:
                raise Unjudged("a value in it is of no single type")

    def _array(self, part: Mapping[str, Any], depth: int) -> tuple[Any, dict[str, Any]]:
        self._check(part, "array")
        kind, bounds = self._kind(self.resolved(part.get("items", {})), depth + 1)
        most = min(_count(part, "maxItems", MOST_ITEMS), MOST_ITEMS)
        return list[_bounded(kind, bounds)], {"min_length": _count(part, "minItems", 0), "max_length": most}

    def _choice(self, part: Mapping[str, Any]) -> Any:
        if not set(part) <= _NOTES | {"enum", "const", "type"}:
            raise Unjudged("a choice stands beside other conditions")
        values = [part["const"]] if "const" in part else list(_sequence(part["enum"]))
        self._left -= len(values)
        if not values or self._left < 0 or not all(_choosable(value) for value in values):
            raise Unjudged("a choice in it is empty, too long, or not of plain values")
        return Literal[tuple(values)]

    def _or_null(self, part: Mapping[str, Any]) -> Any:
        """What a value is where it is not null. None: it is never null."""
        kinds = part.get("type")
        if isinstance(kinds, list):
            others = [kind for kind in cast(list[object], kinds) if kind != "null"]
            return {**part, "type": others[0]} if len(others) == 1 and "null" in kinds else None
        options = part.get("anyOf")
        if options is None or not set(part) <= _NOTES | {"anyOf"}:
            return None
        others = [one for one in _sequence(options) if _mapping(one).get("type") != "null"]
        return others[0] if len(others) == 1 == len(_sequence(options)) - 1 else None

    def _check(self, part: Mapping[str, Any], kind: str) -> None:
        if unknown := sorted(set(part) - _NOTES - _KNOWN[kind] - {"type"}):
            raise Unjudged(f"its schema has {shortened(plain(unknown[0]), 40)!r}, which is not judged here")


_SIMPLE: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}
_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}


def _bounds(kind: str, part: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "string":
        most = min(_count(part, "maxLength", LONGEST_TEXT), LONGEST_TEXT)
        return {"min_length": _count(part, "minLength", 0), "max_length": most}
    found = {ours: _number(part[theirs]) for theirs, ours in _BOUNDS.items() if theirs in part}
    if "multipleOf" in part:
        found["multiple_of"] = _count(part, "multipleOf", 1)
    return found


def _bounded(kind: Any, bounds: dict[str, Any]) -> Any:
    return Annotated[kind, Field(**bounds)] if bounds else kind


def _choosable(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_CHOICE and value == plain(value) and value.isprintable()
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) <= LARGEST_NUMBER)


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST_NUMBER:
        raise Unjudged("a bound in it is no number")
    return value


def _count(part: Mapping[str, Any], name: str, absent: int) -> int:
    value = part.get(name, absent)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
        raise Unjudged(f"its {name} is no count")
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Unjudged("a part of its schema is not an object")
    return cast(Mapping[str, Any], value)


def _sequence(value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise Unjudged("a part of its schema is not a list")
    return cast(Sequence[Any], value)


def parts_of(args: type[McpArgs]) -> Iterator[tuple[str, bool]]:
    """Names of the arguments, each with whether it must be given."""
    return ((name, field.is_required()) for name, field in args.model_fields.items())
