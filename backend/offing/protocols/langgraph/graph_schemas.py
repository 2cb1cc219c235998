"""Drawings and JSON schemas of compiled graphs."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import create_model
from pydantic.errors import PydanticUserError

from offing.core.errors import NotFound
from offing.kernel.execution import compile_graph
from offing.sdk import Graph


async def draw_graph(compiled: Any, xray: bool | int) -> dict[str, Any]:
    """Return the nodes and edges of a graph. `xray` also draws subgraphs, down to a depth."""
    drawn = await compiled.aget_graph(xray=xray)
    return drawn.to_json()


def describe_graph(compiled: Any) -> dict[str, Any]:
    """Return the JSON schemas of a graph. `None` stands for one that cannot be expressed."""
    return {
        "input_schema": _express(compiled.get_input_jsonschema),
        "output_schema": _express(compiled.get_output_jsonschema),
        "state_schema": _express(lambda: _state_schema(compiled)),
        "config_schema": _express(compiled.get_context_jsonschema),
        "context_schema": _express(compiled.get_context_jsonschema),
    }


def list_subgraphs(compiled: Any, namespace: str | None, *, recurse: bool) -> dict[str, Any]:
    """Return the schemas of subgraphs by namespace. Raises NotFound for a namespace that has none."""
    matches = {
        re.sub(r":[^|]*", "", name): describe_graph(graph)
        for name, graph in compiled.get_subgraphs(namespace=namespace, recurse=recurse)
    }
    if namespace is not None and not matches:
        raise NotFound("subgraph", namespace)
    return matches


def _state_schema(compiled: Any) -> Any:
    fields = {
        name: (channel.UpdateType, None) for name, channel in compiled.channels.items() if name in _keys(compiled)
    }
    build: Any = create_model
    return build(f"{compiled.get_name()}State", **fields).model_json_schema()


def _keys(compiled: Any) -> frozenset[str]:
    keys: Any = compiled.stream_channels_asis
    return frozenset((keys,) if isinstance(keys, str) else keys)


def _express(build: Callable[[], Any]) -> Any:
    """Return a schema, or `None` if the graph has none or its classes have none."""
    try:
        return build()
    except (PydanticUserError, TypeError, ValueError, NotImplementedError):
        return None


QUESTION_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"question": {"type": "string", "description": "The question to answer."}},
    "required": ["question"],
}
"""The input of a graph of Offing's SDK."""

MAX_SCHEMAS = 500
"""Number of input schemas that are kept."""

_input_schemas: dict[tuple[str, str], Mapping[str, Any]] = {}
"""By name and version, because making one needs up to 40 ms."""


async def read_input_schema(graph: Graph) -> Mapping[str, Any]:
    """Return the JSON schema of a graph's input: any object, if it cannot be expressed."""
    if graph.langgraph_adapter is None:
        return QUESTION_SCHEMA
    key = (graph.name, graph.version)
    if key not in _input_schemas:
        schema: Any = await asyncio.to_thread(lambda: _express(compile_graph(graph.build).get_input_jsonschema))
        if len(_input_schemas) >= MAX_SCHEMAS:
            _input_schemas.clear()
        _input_schemas[key] = schema or {"type": "object"}
    return _input_schemas[key]
