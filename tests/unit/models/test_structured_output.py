"""Between a type, a schema and a model's text."""

import json
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from offing.core.model import InvalidOutput
from offing.models.structured_output import parse_output, to_strict_schema


class Tool(StrEnum):
    SEARCH = "search"


class Inner(BaseModel):
    title: str = Field(default="x", max_length=9)
    tags: list[str] = []


class Plan(BaseModel):
    goal: str
    stop: bool
    turns: int = 1
    tool: Tool = Tool.SEARCH
    pair: tuple[int, ...] = ()
    inner: Inner | None = None


class Free(BaseModel):
    args: dict[str, Any]


BARE = '{"goal": "g", "stop": false}'


@pytest.mark.parametrize(
    "text",
    [
        BARE,
        f"  {BARE}\n",
        f"```json\n{BARE}\n```",
        f"Here it is:\n```\n{BARE}\n```\nDone.",
        f"<think>{{perhaps}} stop?</think>\n{BARE}",
        '{"goal": "a ```json\\nblock\\n``` inside", "stop": false}',
    ],
)
def test_one_object_is_found_bare_or_fenced(text: str) -> None:
    assert isinstance(parse_output(text, Plan), Plan)


def test_json_forms_of_python_types_are_taken() -> None:
    got = parse_output('{"goal": "g", "stop": true, "tool": "search", "pair": [1, 2], "inner": null}', Plan)
    assert got == Plan(goal="g", stop=True, pair=(1, 2))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("STOP", "not one JSON object"),
        ("[]", "not one JSON object"),
        ('"stop"', "not one JSON object"),
        (f"{BARE} {BARE}", "Extra data"),
        (f"```json\n{BARE}\n```\n```json\n{BARE}\n```", "not one JSON object"),
        ('{"goal": "g"', "not one JSON object"),
        ('{"goal": "g", "stop": "true"}', "stop: "),
        ('{"goal": "g", "stop": 0}', "stop: "),
        ('{"goal": 1, "stop": false}', "goal: "),
        ('{"goal": "g", "stop": false, "turns": "3"}', "turns: "),
        ('{"goal": "g", "stop": false, "turns": NaN}', "NaN"),
        ('{"goal": "g", "stop": false, "stop": true}', "twice"),
        ('{"goal": "a\\u0000b", "stop": false}', "NUL"),
        ('{"goal": "\\ud83d", "stop": false}', ""),
        ('{"inner": {"title": "far too long a title"}}', "inner.title"),
        ("{" * 100_000, ""),
        ('{"goal":' * 50_000, ""),
        ("x" * 500_000, "longer"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_anything_else_is_a_problem_in_words(text: str, says: str) -> None:
    got = parse_output(text, Plan)
    assert isinstance(got, InvalidOutput)
    assert says in got.problem
    assert len(got.problem) < 1000


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    assert isinstance(parse_output('{"goal": "\\\\u0000", "stop": false}', Plan), Plan)


@given(st.text(), st.booleans())
def test_every_value_survives_the_round_trip(goal: str, stop: bool) -> None:
    plan = Plan(goal=goal, stop=stop)
    got = parse_output(json.dumps(plan.model_dump(mode="json")), Plan)
    surrogates = any(0xD800 <= ord(c) <= 0xDFFF for c in goal)
    assert isinstance(got, InvalidOutput) if "\x00" in goal or surrogates else got == plan


@given(st.text(max_size=200))
def test_no_prose_raises_or_passes(text: str) -> None:
    assert isinstance(parse_output(text, Plan), InvalidOutput)


def test_a_strict_schema_is_closed_and_requires_everything() -> None:
    schema = to_strict_schema(Plan.model_json_schema())
    assert schema is not None
    assert schema["required"] == list(Plan.model_fields)
    inner = schema["$defs"]["Inner"]
    assert inner["additionalProperties"] is False
    assert inner["required"] == ["title", "tags"]
    assert inner["properties"]["title"] == {"type": "string"}, "a property named title is no keyword"
    assert "default" not in json.dumps(schema)


def test_what_cannot_be_closed_is_left_to_a_plain_schema() -> None:
    assert to_strict_schema(Free.model_json_schema()) is None
    assert to_strict_schema({"type": "object", "properties": {"any": {}}}) is None
