"""Drawings and JSON schemas of compiled graphs."""

import re
from collections.abc import Callable
from typing import Any

from pydantic import create_model
from pydantic.errors import PydanticUserError

from offing.core.errors import NotFound


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
    except (PydanticUserError, TypeError, NotImplementedError):
        return None
