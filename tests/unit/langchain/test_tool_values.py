"""What a tool gave comes back the same, as values of the same types, and nothing that is not written can be made."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.types import Command, Overwrite, Send

from offing.langchain.tool_values import UnsupportedValueError, decode_value, encode_value


def back(value: Any, state: dict[str, Any] | None = None) -> Any:
    """The value after it was stored as JSON."""
    return decode_value(orjson.loads(orjson.dumps(encode_value(value, state))), state)


PLAIN = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**53), 2**53)
    | some.floats(allow_nan=False)
    | some.text(max_size=20),
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.dictionaries(some.text(max_size=5) | some.just("$"), inner, max_size=4)
        | some.tuples(inner, inner)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    assert back(value) == value


@pytest.mark.parametrize(
    "value",
    [
        b"\x00\xff",
        float("inf"),
        {1: "a", (2, 3): "b"},
        {"$": "message"},
        {"a", "b"},
        frozenset({1}),
        datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        date(2026, 1, 2),
        Decimal("1.20"),
        UUID(int=7),
        Document("Built in 1907.", metadata={"page": 3}),
        Overwrite([1]),
        Send("part", {"of": "a", "messages": [HumanMessage("Hello", id="1")]}),
    ],
)
def test_other_values_come_back_as_they_were(value: Any) -> None:
    assert back(value) == value
    assert type(back(value)) is type(value)


@pytest.mark.parametrize(
    "message",
    [
        ToolMessage("4 m", tool_call_id="c1", name="measure", artifact={"meters": (4, 5)}, status="error"),
        ToolMessage([{"type": "text", "text": "4 m"}], tool_call_id="c1"),
        AIMessage(
            "Hm", id="a", name="Bob", tool_calls=[{"name": "add", "args": {"a": 1}, "id": "c", "type": "tool_call"}]
        ),
        HumanMessage("Hello", additional_kwargs={"seen": True}),
        SystemMessage("Be kind."),
        RemoveMessage(id="a"),
    ],
)
def test_a_message_comes_back_with_all_its_fields(message: BaseMessage) -> None:
    assert back(message) == message


@pytest.mark.parametrize(
    "command",
    [
        Command(update={"files": {"/a": {"content": "x"}}, "messages": [ToolMessage("done", tool_call_id="c1")]}),
        Command(goto="Bob", graph=Command.PARENT, update={"active_agent": "Bob"}),
        Command(goto=[Send("a", {"n": 1}), "b"]),
        Command(update=[("notes", "tea")]),
    ],
)
def test_a_command_comes_back_as_it_was(command: Command[Any]) -> None:
    assert back(command) == command
    assert back([command, ToolMessage("x", tool_call_id="c2")])[0] == command


def conversation(length: int, seed: str = "") -> list[Any]:
    """Messages with ids that are drawn, as LangGraph draws them."""
    return [HumanMessage(f"message {n}", id=f"{seed}{n}") for n in range(length)]


def test_what_repeats_the_state_costs_no_more_than_its_position() -> None:
    state = {"messages": conversation(500), "files": {"/a": "x" * 10_000}}
    handed = Command(
        goto="Bob", update={**state, "messages": [*state["messages"], ToolMessage("to Bob", tool_call_id="c")]}
    )
    assert len(orjson.dumps(encode_value(handed, state))) < 1_000
    assert back(handed, state) == handed


def test_a_position_in_the_state_is_found_with_any_message_ids() -> None:
    state, later = {"messages": conversation(3, "a")}, {"messages": conversation(3, "b")}
    stored = encode_value([*state["messages"], HumanMessage("new")], state)
    assert [m.content for m in decode_value(stored, later)] == ["message 0", "message 1", "message 2", "new"]


@pytest.mark.parametrize(
    "later", [{}, {"messages": conversation(2)}, {"messages": [*conversation(2), HumanMessage("x")]}]
)
def test_a_result_is_not_taken_where_the_state_is_not_what_it_was(later: dict[str, Any]) -> None:
    state = {"messages": conversation(3)}
    with pytest.raises(UnsupportedValueError, match="messages"):
        decode_value(encode_value(list(state["messages"]), state), later)


@dataclass
class CustomValue:
    """A class of somebody's."""

    n: int


class Words(str):
    """A text of another class."""


@pytest.mark.parametrize(
    "value", [CustomValue(1), object(), {"a": [CustomValue(1)]}, Words("a"), Command(resume="yes"), lambda: 1]
)
def test_what_has_no_form_is_not_kept(value: Any) -> None:
    with pytest.raises(UnsupportedValueError):
        encode_value(value)


@pytest.mark.parametrize(
    "stored",
    [
        {"$": "os.system", "args": ["x"]},
        {"$": "message", "of": "function", "fields": {}},
        {"$": "message", "of": "tool", "fields": {"content": "x"}},
        {"$": "command", "run": "x"},
        {"$": "uuid", "text": "no"},
        {"$": "document"},
        {"lc": 1, "type": "constructor", "id": ["langchain", "x"], "kwargs": {}, "$": "constructor"},
    ],
)
def test_a_stored_value_builds_nothing_but_what_is_written(stored: Any) -> None:
    with pytest.raises(UnsupportedValueError):
        decode_value(stored)
