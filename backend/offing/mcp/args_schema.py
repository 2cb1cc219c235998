"""Build an argument model from a server's JSON schema, or explain why the schema is not supported.

Supported are objects, arrays, strings, numbers, enums and null, within limits. An unknown keyword that
would restrict the accepted values rejects the tool. The exceptions are `pattern` and `format`, which the
server checks itself, because a pattern can be made slow.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, create_model, model_serializer

from offing.core.step import shorten_line
from offing.core.untrusted_block import sanitize_text

MAX_DEPTH = 5
MAX_SCHEMA_PARTS = 200
"""Maximum number of properties, items and enum values of a schema together."""
MAX_PROPERTIES = 40
MAX_ENUM_VALUE_CHARS = 64
MAX_DESCRIPTION_CHARS = 200
"""Maximum code points of an argument's description."""
MAX_STRING_CHARS = 20_000
MAX_ITEMS = 200
MAX_NUMBER = 2**53

_ANNOTATION_KEYWORDS = frozenset(
    ("$comment", "$id", "$schema", "default", "deprecated", "description", "examples", "format", "pattern", "readOnly")
) | {"title", "writeOnly", "contentEncoding", "contentMediaType", "$defs", "definitions"}
_KEYWORDS_BY_TYPE = {
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set[str](),
    "array": {"items", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties"},
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class UnsupportedSchemaError(Exception):
    """`UnsupportedSchemaError(problem)`: why a schema is rejected."""


class McpArgs(BaseModel):
    """Arguments of a server's tool. Unset arguments are not sent, and tool policies do not see them."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)

    @model_serializer(mode="wrap")
    def _drop_unset(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        whole: dict[str, Any] = handler(self)
        return {name: value for name, value in whole.items() if name in self.model_fields_set}


def args_model_from_schema(schema: Mapping[str, Any]) -> type[McpArgs]:
    """Return a model of the arguments that the schema allows. Raises UnsupportedSchemaError."""
    reader = _SchemaReader(schema)
    whole = reader.resolve_references(schema)
    if whole.get("type") != "object":
        raise UnsupportedSchemaError("its arguments are not an object")
    return reader.build_args_model(whole, 0, free=True)


class _SchemaReader:
    """Reads one schema, with its definitions and the remaining limits."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root, self._remaining = root, MAX_SCHEMA_PARTS

    def resolve_references(self, part: Any) -> Mapping[str, Any]:
        """Follow references within the schema, up to a few levels."""
        for _ in range(MAX_DEPTH):
            resolved = _require_mapping(part)
            if "$ref" not in resolved:
                return resolved
            if not set(resolved) <= _ANNOTATION_KEYWORDS | {"$ref"}:
                raise UnsupportedSchemaError("a reference is combined with other keywords")
            part = self._get_definition(resolved["$ref"])
        raise UnsupportedSchemaError("its references are circular")

    def _get_definition(self, reference: object) -> Any:
        match = re.fullmatch(r"#/(\$defs|definitions)/([A-Za-z0-9_.-]+)", str(reference))
        if match is None:
            raise UnsupportedSchemaError("a reference points outside the schema")
        try:
            return self._root[match[1]][match[2]]
        except (KeyError, TypeError):
            raise UnsupportedSchemaError("a reference has no target") from None

    def build_args_model(self, part: Mapping[str, Any], depth: int, *, free: bool = False) -> type[McpArgs]:
        """Build the model of an object. With `free`, an object without properties has no arguments instead of any."""
        self._check_keywords(part, "object")
        named = _require_mapping(part.get("properties", {}))
        required = _require_sequence(part.get("required", ()))
        if not named and not free:
            raise UnsupportedSchemaError("an object in it allows any properties")
        if len(named) > MAX_PROPERTIES or not set(required) <= set(named):
            raise UnsupportedSchemaError("it has too many arguments, or requires arguments that it does not define")
        if isinstance(part.get("additionalProperties"), dict):
            raise UnsupportedSchemaError("an object in it allows additional properties")
        fields = {name: self._build_field(name, inner, depth, name in required) for name, inner in named.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a name such as `schema` shadows an unused method
            return create_model("Arguments", __base__=McpArgs, **cast(dict[str, Any], fields))

    def _build_field(self, name: str, part: Any, depth: int, required: bool) -> tuple[Any, Any]:
        if not _NAME.fullmatch(name) or name.startswith("model_"):
            raise UnsupportedSchemaError(f"an argument is called {shorten_line(sanitize_text(name), 40)!r}")
        schema = self.resolve_references(part)
        description = shorten_line(sanitize_text(str(schema.get("description", ""))), MAX_DESCRIPTION_CHARS) or None
        kind, bounds = self._build_type(schema, depth + 1)
        return kind, Field(... if required else None, description=description, **bounds)

    def _build_type(self, part: Mapping[str, Any], depth: int) -> tuple[Any, dict[str, Any]]:
        """Return the type of a value and its bounds."""
        self._remaining -= 1
        if depth > MAX_DEPTH or self._remaining < 0:
            raise UnsupportedSchemaError("its schema is too large or too deep")
        if "enum" in part or "const" in part:
            return self._build_enum_type(part), {}
        if (inner := self._non_null_part(part)) is not None:
            kind, bounds = self._build_type(self.resolve_references(inner), depth)
            return _apply_bounds(kind, bounds) | None, {}
        match part.get("type"):
            case "object":
                return self.build_args_model(part, depth), {}
            case "array":
                return self._build_array_type(part, depth)
            case "string" | "integer" | "number" | "boolean" as name:
                self._check_keywords(part, name)
                return _SIMPLE_TYPES[name], _parse_bounds(name, part)
            case _:
                raise UnsupportedSchemaError("a value in it does not have exactly one type")

    def _build_array_type(self, part: Mapping[str, Any], depth: int) -> tuple[Any, dict[str, Any]]:
        self._check_keywords(part, "array")
        kind, bounds = self._build_type(self.resolve_references(part.get("items", {})), depth + 1)
        max_length = min(_parse_count(part, "maxItems", MAX_ITEMS), MAX_ITEMS)
        return list[_apply_bounds(kind, bounds)], {
            "min_length": _parse_count(part, "minItems", 0),
            "max_length": max_length,
        }

    def _build_enum_type(self, part: Mapping[str, Any]) -> Any:
        if not set(part) <= _ANNOTATION_KEYWORDS | {"enum", "const", "type"}:
            raise UnsupportedSchemaError("an enum is combined with other keywords")
        values = [part["const"]] if "const" in part else list(_require_sequence(part["enum"]))
        self._remaining -= len(values)
        if not values or self._remaining < 0 or not all(_is_allowed_enum_value(value) for value in values):
            raise UnsupportedSchemaError("an enum in it is empty, too long, or has an unsupported value")
        return Literal[tuple(values)]

    def _non_null_part(self, part: Mapping[str, Any]) -> Any:
        """Return the schema of a nullable value without null, or `None` if the value is never null."""
        kinds = part.get("type")
        if isinstance(kinds, list):
            others = [kind for kind in cast(list[object], kinds) if kind != "null"]
            return {**part, "type": others[0]} if len(others) == 1 and "null" in kinds else None
        options = part.get("anyOf")
        if options is None or not set(part) <= _ANNOTATION_KEYWORDS | {"anyOf"}:
            return None
        others = [one for one in _require_sequence(options) if _require_mapping(one).get("type") != "null"]
        return others[0] if len(others) == 1 == len(_require_sequence(options)) - 1 else None

    def _check_keywords(self, part: Mapping[str, Any], kind: str) -> None:
        if unknown := sorted(set(part) - _ANNOTATION_KEYWORDS - _KEYWORDS_BY_TYPE[kind] - {"type"}):
            raise UnsupportedSchemaError(
                f"its schema has {shorten_line(sanitize_text(unknown[0]), 40)!r}, which is not supported"
            )


_SIMPLE_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}
_BOUND_KEYWORDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}


def _parse_bounds(kind: str, part: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "string":
        max_length = min(_parse_count(part, "maxLength", MAX_STRING_CHARS), MAX_STRING_CHARS)
        return {"min_length": _parse_count(part, "minLength", 0), "max_length": max_length}
    bounds = {ours: _require_number(part[theirs]) for theirs, ours in _BOUND_KEYWORDS.items() if theirs in part}
    if "multipleOf" in part:
        bounds["multiple_of"] = _parse_count(part, "multipleOf", 1)
    return bounds


def _apply_bounds(kind: Any, bounds: dict[str, Any]) -> Any:
    return Annotated[kind, Field(**bounds)] if bounds else kind


def _is_allowed_enum_value(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ENUM_VALUE_CHARS and value == sanitize_text(value) and value.isprintable()
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) <= MAX_NUMBER)


def _require_number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_NUMBER:
        raise UnsupportedSchemaError("a bound in it is not a number")
    return value


def _parse_count(part: Mapping[str, Any], name: str, absent: int) -> int:
    value = part.get(name, absent)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_NUMBER:
        raise UnsupportedSchemaError(f"its {name} is not a valid count")
    return value


def _require_mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UnsupportedSchemaError("a part of its schema is not an object")
    return cast(Mapping[str, Any], value)


def _require_sequence(value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise UnsupportedSchemaError("a part of its schema is not a list")
    return cast(Sequence[Any], value)


def list_arguments(args: type[McpArgs]) -> Iterator[tuple[str, bool]]:
    """Yield the names of the arguments, each with whether it is required."""
    return ((name, field.is_required()) for name, field in args.model_fields.items())
