"""Assistants as tools of MCP: their names, schemas and calls."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from offing.core.errors import NotFound
from offing.kernel.langgraph_json import dump_json
from offing.protocols.langgraph.assistant_reads import list_usable_assistants
from offing.protocols.langgraph.context import Caller
from offing.protocols.langgraph.graph_schemas import read_input_schema
from offing.services.langgraph_assistants import is_graph_assistant
from offing.storage.assistants import AssistantRow

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""Names that every client of MCP accepts."""

WRAPPED = "input"
"""The argument that stands for the whole input of a graph that takes no object."""


@dataclass(frozen=True, slots=True)
class AssistantTool:
    """An assistant as a tool."""

    name: str
    assistant: AssistantRow
    schema: Mapping[str, Any]
    """JSON schema of the arguments."""
    is_wrapped: bool
    """Whether the argument `input` stands for the whole input."""

    def build_input(self, arguments: Mapping[str, Any]) -> Any:
        """Return the input of a run that a call makes."""
        return arguments.get(WRAPPED) if self.is_wrapped else dict(arguments)

    def render(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.assistant.name,
            "description": self.assistant.description or f"Run the assistant {self.assistant.name}.",
            "inputSchema": self.schema,
        }


async def list_named(caller: Caller) -> list[tuple[str, AssistantRow]]:
    """Return the assistants whose graphs are installed, with the names of their tools."""
    assistants = [one for one in await list_usable_assistants(caller) if one.graph in caller.context.graphs]
    return sorted(name_tools(assistants).items())


def name_tools(assistants: Sequence[AssistantRow]) -> dict[str, AssistantRow]:
    """Return assistants by the names of their tools.

    That of a graph has the graph's name. A stored one has its own name, or its id if the name is that of another
    assistant or is not allowed, so that no new assistant takes the calls of another one.
    """
    own = {one.graph for one in assistants if is_graph_assistant(one)}
    counts = Counter(one.name for one in assistants if not is_graph_assistant(one))
    named: dict[str, AssistantRow] = {}
    for one in assistants:
        if is_graph_assistant(one):
            named[one.graph] = one
        else:
            is_free = counts[one.name] == 1 and one.name not in own and NAME.fullmatch(one.name)
            named[one.name if is_free else str(one.id)] = one
    return named


async def find_tool(caller: Caller, name: str) -> AssistantTool:
    """Return a tool. Raises NotFound."""
    for candidate, assistant in await list_named(caller):
        if candidate == name:
            return await build_tool(caller, name, assistant)
    raise NotFound("tool", name)


async def build_tool(caller: Caller, name: str, assistant: AssistantRow) -> AssistantTool:
    schema = await read_input_schema(caller.context.graphs[assistant.graph])
    if schema.get("type") == "object":
        return AssistantTool(name, assistant, schema, is_wrapped=False)
    wrapped = {"type": "object", "properties": {WRAPPED: _without_definitions(schema)}, "required": [WRAPPED]}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return AssistantTool(name, assistant, {**wrapped, **definitions}, is_wrapped=True)


def _without_definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "$defs"}


def render_failure(text: str) -> dict[str, Any]:
    """Return the result of a call that failed, for the model that called the tool."""
    return {"content": [_text(text)], "isError": True}


def render_output(output: Any) -> dict[str, Any]:
    """Return the result of a call whose run has ended. `output` is plain data."""
    if not isinstance(output, dict):
        text = output if isinstance(output, str) else dump_json(output).decode()
        return {"content": [_text(text)], "isError": False}
    values = cast(dict[str, Any], output)
    if (failure := values.get("__error__")) is not None:
        return render_failure(f"{failure['error']}: {failure['message']}")
    return {"content": [_text(dump_json(values).decode())], "structuredContent": values, "isError": False}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
