"""Which JSON schemas of arguments are judged, what they then accept, and why others are rejected."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from offing.mcp.args_schema import McpArgs, UnsupportedSchemaError, args_model_from_schema

TEXT = {"type": "string"}


def of(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def validated(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments as they are sent."""
    return args_model_from_schema(schema).model_validate(arguments).model_dump(mode="json")


ACCEPTED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (of({}), {}),
    ({"type": "object"}, {}),
    (of({"a": TEXT}, required=["a"]), {"a": "x"}),
    (of({"a": TEXT}), {}),
    (of({"a": {"type": "string", "default": "x", "title": "A", "format": "uri", "pattern": "(a+)+$"}}), {"a": "y"}),
    (of({"n": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2}}), {"n": 4}),
    (of({"n": {"type": "number", "exclusiveMinimum": 0}}), {"n": 0.5}),
    (of({"b": {"type": "boolean"}}), {"b": False}),
    (of({"c": {"enum": ["a", "b", None, 3, True]}}), {"c": "b"}),
    (of({"c": {"type": "string", "const": "only"}}), {"c": "only"}),
    (of({"l": {"type": "array", "items": TEXT, "maxItems": 3}}), {"l": ["x", "y"]}),
    (of({"o": of({"a": TEXT}, required=["a"])}), {"o": {"a": "x"}}),
    (of({"a": {"anyOf": [TEXT, {"type": "null"}], "default": None}}), {"a": None}),
    (of({"a": {"type": ["integer", "null"], "minimum": 2}}), {"a": 2}),
    (of({"o": {"$ref": "#/$defs/O"}}, **{"$defs": {"O": of({"a": TEXT})}}), {"o": {"a": "x"}}),
    ({"$ref": "#/definitions/A", "definitions": {"A": of({"a": TEXT})}}, {"a": "x"}),
    (of({"schema": TEXT, "json": TEXT, "copy": TEXT, "my-name": TEXT}), {"schema": "a", "json": "b", "my-name": "c"}),
    (of({"a": TEXT}, additionalProperties=False), {"a": "x"}),
]


@pytest.mark.parametrize(("schema", "arguments"), ACCEPTED, ids=lambda value: json.dumps(value)[:60])
def test_arguments_that_a_schema_allows_are_sent_as_they_were_given(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert validated(schema, arguments) == arguments


WRONG: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (of({"a": TEXT}, required=["a"]), {}),
    (of({"a": TEXT}), {"b": "x"}),
    (of({"a": TEXT}), {"a": 3}),
    (of({"a": TEXT}), {"a": None}),
    (of({"a": {"type": "string", "maxLength": 2}}), {"a": "xxx"}),
    (of({"a": TEXT}), {"a": "x" * 20_001}),
    (of({"n": {"type": "integer", "minimum": 1}}), {"n": 0}),
    (of({"n": {"type": ["integer", "null"], "minimum": 2}}), {"n": 1}),
    (of({"n": {"type": "number"}}), {"n": float("inf")}),
    (of({"c": {"enum": ["a"]}}), {"c": "b"}),
    (of({"l": {"type": "array", "items": TEXT}}), {"l": ["x"] * 201}),
    (of({"l": {"type": "array", "items": {"type": "string", "maxLength": 1}}}), {"l": ["xx"]}),
    (of({"o": of({"a": TEXT})}), {"o": {"b": 1}}),
]


@pytest.mark.parametrize(("schema", "arguments"), WRONG, ids=lambda value: json.dumps(value)[:60])
def test_arguments_that_it_does_not_allow_are_rejected(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validated(schema, arguments)


def _nested(depth: int) -> dict[str, Any]:
    return TEXT if depth == 0 else of({"a": _nested(depth - 1)})


REJECTED: list[tuple[Any, str]] = [
    ({"type": "string"}, "not an object"),
    ({}, "not an object"),
    (of({"a": {}}), "not have exactly one type"),
    (of({"a": {"type": "object"}}), "allows any properties"),
    (of({"a": {"type": "array"}}), "not have exactly one type"),
    (of({"a": {"type": ["string", "integer"]}}), "not have exactly one type"),
    (of({"a": {"oneOf": [TEXT, {"type": "integer"}]}}), "not have exactly one type"),
    (of({"a": {"anyOf": [TEXT, {"type": "integer"}]}}), "not have exactly one type"),
    (of({"a": TEXT}, allOf=[of({"b": TEXT})]), "'allOf'"),
    (of({"a": TEXT}, dependentRequired={"a": ["b"]}), "'dependentRequired'"),
    (of({"a": TEXT}, patternProperties={"^x": TEXT}), "'patternProperties'"),
    (of({"a": TEXT}, additionalProperties=TEXT), "allows additional properties"),
    (of({"a": {"type": "string", "x-mcp-header": "Authorization"}}), "'x-mcp-header'"),
    (of({"a": {"not": TEXT, "type": "string"}}), "'not'"),
    (of({"a": {"$ref": "https://evil.example/schema"}}), "outside the schema"),
    (of({"a": {"$ref": "#/$defs/none"}}), "has no target"),
    (of({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"$ref": "#/$defs/A"}}}), "circular"),
    (of({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": of({"a": {"$ref": "#/$defs/A"}})}}), "too large or too deep"),
    (of({"a": {"$ref": "#/$defs/A", "maxLength": 3}}, **{"$defs": {"A": TEXT}}), "combined with other keywords"),
    (of({"a": _nested(30)}), "too large or too deep"),
    (of({f"a{n}": TEXT for n in range(41)}), "too many arguments"),
    (of({f"a{n}": of({f"b{m}": TEXT for m in range(30)}) for n in range(30)}), "too large or too deep"),
    (of({"a": {"enum": [f"v{n}" for n in range(300)]}}), "an enum"),
    (of({"a": {"enum": []}}), "an enum"),
    (of({"a": {"enum": ["x" * 65]}}), "an enum"),
    (of({"a": {"enum": ["ignore\u202eall"]}}), "an enum"),
    (of({"a": {"enum": [{"x": 1}]}}), "an enum"),
    (of({"a": {"enum": ["a"], "maxLength": 3}}), "combined with other keywords"),
    (of({"a": TEXT}, required=["b"]), "does not define"),
    (of({"a b": TEXT}), "called 'a b'"),
    (of({"_a": TEXT}), "called '_a'"),
    (of({"model_dump": TEXT}), "called 'model_dump'"),
    (of({"a": {"type": "integer", "minimum": "1"}}), "not a number"),
    (of({"a": {"type": "integer", "minimum": 10**400}}), "not a number"),
    (of({"a": {"type": "string", "maxLength": -1}}), "not a valid count"),
    (of({"a": {"type": "string", "minLength": 1.5}}), "not a valid count"),
    ({"type": "object", "properties": []}, "not an object"),
    ({"type": "object", "properties": {"a": 3}}, "not an object"),
    (of({"a": TEXT}, required="a"), "not a list"),
]


@pytest.mark.parametrize(("schema", "why"), REJECTED, ids=lambda value: str(value)[:60])
def test_an_unsupported_schema_is_rejected_with_its_reason(schema: Any, why: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=why):
        args_model_from_schema(schema)


def test_what_a_model_is_shown_of_a_schema_has_no_words_of_the_servers_but_short_descriptions() -> None:
    message = "Which place.\n\x1b[31mdata 0123456789abcdef\u202e" + "x" * 500
    hostile = {"type": "string", "description": message, "title": "IGNORE", "default": "IGNORE", "examples": ["IGNORE"]}
    text = json.dumps(
        args_model_from_schema(of({"a": {**hostile, "pattern": "IGNORE", "$comment": "IGNORE"}})).model_json_schema()
    )
    assert "IGNORE" not in text
    assert "\\u202e" not in text
    assert "\\u001b" not in text
    assert "x" * 200 not in text
    assert "Which place." in text


def test_arguments_that_were_not_given_are_seen_by_no_policy_and_not_sent() -> None:
    args: type[McpArgs] = args_model_from_schema(of({"a": TEXT, "o": of({"b": TEXT, "c": TEXT})}))
    assert args.model_validate({"o": {"c": "x"}}).model_dump(mode="json") == {"o": {"c": "x"}}
    assert list(args.model_fields) == ["a", "o"]
