"""Several tool calls of one turn, which are made at the same time because none needs the result of another."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import Field

from offing.sdk import ToolCall
from offing_graphs.shared.schemas import FrozenModel, ToolCard

MAX_CALLS = 5
"""Maximum number of tool calls in one turn."""
BATCH_RULE = (
    f"Calls that do not need each other's results, such as searches for different things, may be made at once: up to "
    f"{MAX_CALLS}."
)
"""What a prompt says about several calls."""
TOO_MANY_CALLS = f"At most {MAX_CALLS} tool calls can be made at once, but there are {{count}}."
QUERY_LIST = "query_list"
"""Name of the repair that makes a call with a list of queries several calls."""


class Call(FrozenModel):
    """A tool call."""

    tool: str = Field(min_length=1, description="Exact name of one of the tools.")
    args: dict[str, Any] = Field(description="Its arguments, as its JSON schema asks.")

    def to_tool_call(self) -> ToolCall:
        return ToolCall(self.tool, dict(self.args))


def split_call(call: Call, tools: Iterable[ToolCard]) -> tuple[Call, ...]:
    """Return one call for each text of a list, if the tool takes a single text where the call has the list.

    Other calls are returned unchanged.
    """
    card = next((card for card in tools if card.name == call.tool), None)
    properties: Mapping[str, Any] = card.parameters.get("properties", {}) if card else {}
    lists = [k for k, value in call.args.items() if _is_text_list(value) and _takes_one_text(properties.get(k))]
    if len(lists) != 1:
        return (call,)
    (name,) = lists
    return tuple(Call(tool=call.tool, args={**call.args, name: text}) for text in call.args[name])


def split_calls(calls: Sequence[Call], tools: Iterable[ToolCard]) -> tuple[Call, ...]:
    """Return the calls with lists of texts as one call for each text. Equal calls are made once."""
    cards, split = tuple(tools), list[Call]()
    for one in (one for call in calls for one in split_call(call, cards)):
        if one not in split:
            split.append(one)
    return tuple(split)


def _is_text_list(value: Any) -> bool:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(items) and all(isinstance(one, str) for one in items)


def _takes_one_text(schema: Any) -> bool:
    """Return whether the schema of an argument allows a text and no list."""
    if not isinstance(schema, Mapping):
        return False
    fields = cast("Mapping[str, Any]", schema)
    options: Sequence[Mapping[str, Any]] = fields.get("anyOf") or [fields]
    types = {option.get("type") for option in options}
    return "string" in types and "array" not in types
