"""The state of a LangGraph graph after a checkpoint: messages are unchanged, custom classes only if they are named."""

from dataclasses import dataclass

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from offing.storage.state_serializer import build_serializer


@dataclass(frozen=True)
class Step:
    what: str


class Plan(BaseModel):
    steps: list[str]


def again(value: object, *types: type) -> object:
    saver = build_serializer(types)
    return saver.loads_typed(saver.dumps_typed(value))


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("q", id="1"),
        AIMessage("", tool_calls=[{"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}]),
        ToolMessage("3", tool_call_id="c1"),
    ],
    ids=lambda message: message.type,
)
def test_messages_come_back_as_they_were(message: BaseMessage) -> None:
    assert again([message]) == [message]


@pytest.mark.parametrize("value", [Step("read"), Plan(steps=["read"])], ids=["dataclass", "model"])
def test_own_classes_come_back_where_they_are_named_and_else_as_plain_data(value: object) -> None:
    assert again(value, type(value)) == value
    assert not isinstance(again(value), type(value))
