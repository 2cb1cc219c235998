"""A value is checked against a JSON schema as other validators do, and what is wrong is said by its field."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as some

from offing.core.errors import InvalidInput
from offing.core.json_schema import MAX_CHECKS, check_value

DECISION = {
    "type": "object",
    "properties": {
        "decision": {"enum": ["yes", "no"]},
        "reason": {"type": "string", "minLength": 2},
        "amount": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10, "multipleOf": 3},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": True},
        "place": {"$ref": "#/$defs/Place"},
        "who": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["decision"],
    "additionalProperties": False,
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}

CHOSEN = {
    "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
    "discriminator": {"propertyName": "type"},
    "$defs": {
        "A": {"type": "object", "properties": {"type": {"const": "a"}, "n": {"type": "integer"}}, "required": ["n"]},
        "B": {"type": "object", "properties": {"type": {"const": "b"}, "s": {"type": "string"}}, "required": ["s"]},
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {"decision": "yes"},
        {"decision": "no", "reason": "so", "amount": 9, "tags": ["a", "b"], "place": {"x": 1.5}, "who": None},
        {"decision": "no", "amount": 3.0, "who": "Ada", "place": {"x": 1, "y": "free"}},
    ],
)
def test_a_value_that_fits_is_taken(value: Any) -> None:
    check_value(DECISION, value, "text")


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ("yes", "text", "must be an object. Use an object with the fields decision."),
        ({}, "text.decision", 'Use one of: "yes", "no".'),
        ({"decision": "maybe"}, "text.decision", "is not one of the choices"),
        ({"decision": "yes", "reason": "s"}, "text.reason", "at least 2 characters"),
        ({"decision": "yes", "reason": 3}, "text.reason", "must be a string"),
        ({"decision": "yes", "amount": True}, "text.amount", "must be an integer"),
        ({"decision": "yes", "amount": 3.5}, "text.amount", "must be an integer"),
        ({"decision": "yes", "amount": 0}, "text.amount", "must be at least 1"),
        ({"decision": "yes", "amount": 10}, "text.amount", "must be less than 10"),
        ({"decision": "yes", "amount": 4}, "text.amount", "a multiple of 3"),
        ({"decision": "yes", "tags": ["a", 1]}, "text.tags[1]", "must be a string"),
        ({"decision": "yes", "tags": ["a", "a"]}, "text.tags", "the same item twice"),
        ({"decision": "yes", "tags": ["a", "b", "c"]}, "text.tags", "at most 2 items"),
        ({"decision": "yes", "place": {}}, "text.place.x", "is required"),
        ({"decision": "yes", "who": 3}, "text.who", "must be"),
        ({"decision": "yes", "else": 3}, "text.else", "is not a field of this object"),
    ],
)
def test_what_does_not_fit_is_said_by_its_field_and_with_what_would(value: Any, field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_value(DECISION, value, "text")
    assert caught.value.field == field
    assert words in str(caught.value)


def test_the_alternative_that_was_meant_is_the_one_that_is_spoken_of() -> None:
    check_value(CHOSEN, {"type": "a", "n": 1}, "text")
    with pytest.raises(InvalidInput, match=r"text\.s: is required"):
        check_value(CHOSEN, {"type": "b", "n": 1}, "text")
    untold = {name: value for name, value in CHOSEN.items() if name != "discriminator"}
    with pytest.raises(InvalidInput, match=r"text\.n: must be an integer"):
        check_value(untold, {"type": "a", "n": "one"}, "text")


def test_a_schema_that_would_take_forever_is_given_up() -> None:
    level = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    endless = {"$defs": {**level, "l40": False, "me": {"$ref": "#/$defs/me"}}}
    for name in ("l0", "me"):
        with pytest.raises(InvalidInput):
            check_value({**endless, "$ref": f"#/$defs/{name}"}, 1, "text")
    with pytest.raises(InvalidInput, match="too large"):
        check_value({"items": {"type": "integer"}}, list(range(MAX_CHECKS + 1)), "text")


@pytest.mark.parametrize("reference", ["https://example.org/schema", "#/$defs/nothing", "other.json", 7])
def test_a_reference_out_of_the_schema_is_not_followed(reference: Any) -> None:
    check_value({"$ref": reference}, {"any": "thing"}, "text")


def test_numbers_beyond_those_of_a_processor_are_checked_too() -> None:
    check_value({"type": "integer", "minimum": 1, "multipleOf": 2}, 10**400, "text")
    with pytest.raises(InvalidInput):
        check_value({"type": "number", "maximum": 1.5}, 10**400, "text")


SCALARS = some.none() | some.booleans() | some.integers(-9, 9) | some.sampled_from(["", "a", "bc"])
VALUES = some.recursive(
    SCALARS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from("abc"), inner, max_size=3),
)
LEAVES = some.one_of(
    some.booleans(),
    some.fixed_dictionaries({"type": some.sampled_from(["string", "integer", "boolean", "null", "object", "array"])}),
    some.fixed_dictionaries({"enum": some.lists(SCALARS, min_size=1, max_size=3, unique_by=repr)}),
    some.fixed_dictionaries({"const": VALUES}),
    some.fixed_dictionaries({"minimum": some.integers(-5, 5)}),
    some.fixed_dictionaries({"maxLength": some.integers(0, 2)}),
    some.fixed_dictionaries({"minItems": some.integers(0, 2), "uniqueItems": some.booleans()}),
)
SCHEMAS = some.recursive(
    LEAVES,
    lambda inner: some.one_of(
        some.fixed_dictionaries({"properties": some.dictionaries(some.sampled_from("abc"), inner, max_size=3)}),
        some.fixed_dictionaries({"required": some.lists(some.sampled_from("abc"), unique=True, max_size=2)}),
        some.fixed_dictionaries({"additionalProperties": inner}),
        some.fixed_dictionaries({"items": inner, "prefixItems": some.lists(inner, min_size=1, max_size=2)}),
        some.fixed_dictionaries({"anyOf": some.lists(inner, min_size=1, max_size=3)}),
        some.fixed_dictionaries({"oneOf": some.lists(inner, min_size=1, max_size=3)}),
        some.fixed_dictionaries({"allOf": some.lists(inner, min_size=1, max_size=3)}),
        some.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=8,
)


@given(SCHEMAS, VALUES)
def test_other_validators_say_the_same(schema: Any, value: Any) -> None:
    whole = {"allOf": [schema]}
    try:
        check_value(whole, value, "text")
    except InvalidInput:
        assert not jsonschema_rs.is_valid(whole, value)
    else:
        assert jsonschema_rs.is_valid(whole, value)
