"""Several tool calls of one turn: lists of queries, equal calls, and calls that stay unchanged."""

from typing import Any

import pytest

from offing_graphs.shared.call_batches import Call, split_calls
from offing_graphs.shared.schemas import ToolCard

TEXT, OPTIONAL = {"type": "string"}, {"anyOf": [{"type": "string"}, {"type": "null"}]}
TEXTS = {"type": "array", "items": TEXT}


def card(**properties: Any) -> ToolCard:
    return ToolCard(name="search", description="Finds.", parameters={"properties": properties})


def split(tool_card: ToolCard, **args: Any) -> list[dict[str, Any]]:
    return [call.args for call in split_calls([Call(tool="search", args=args)], [tool_card])]


@pytest.mark.parametrize("schema", [TEXT, OPTIONAL])
def test_a_list_of_queries_is_one_call_for_each_of_them(schema: Any) -> None:
    calls = split(card(query=schema, limit={"type": "integer"}), query=["a", "b", "a"], limit=3)
    assert calls == [{"query": "a", "limit": 3}, {"query": "b", "limit": 3}]


@pytest.mark.parametrize(
    ("properties", "args"),
    [
        ({"query": TEXT}, {"query": "a"}),
        ({"queries": TEXTS}, {"queries": ["a", "b"]}),
        ({"query": {"anyOf": [TEXT, TEXTS]}}, {"query": ["a", "b"]}),
        ({"query": TEXT}, {"query": []}),
        ({"query": TEXT}, {"query": ["a", 1]}),
        ({"query": TEXT, "place": TEXT}, {"query": ["a", "b"], "place": ["c", "d"]}),
        ({"query": TEXT}, {"unknown": ["a", "b"]}),
    ],
)
def test_every_other_call_stays_as_it_is(properties: dict[str, Any], args: dict[str, Any]) -> None:
    assert split(card(**properties), **args) == [args]


def test_a_call_of_an_unknown_tool_stays_and_equal_calls_are_made_once() -> None:
    known, unknown = Call(tool="search", args={"query": "a"}), Call(tool="other", args={"query": ["a", "b"]})
    assert split_calls([known, unknown, known], [card(query=TEXT)]) == (known, unknown)
