"""Check for classes in a graph's state that a checkpoint restores as plain data.

Stored bytes must not choose a class.
"""

import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from pydantic import BaseModel

from offing.langchain.state_classes import iter_state_classes
from offing.sdk import Graph
from offing.testing.graph_checks.issue import ERROR, GraphIssue
from offing.testing.graph_checks.reachable_values import GraphWalk

DATA_MODULES = frozenset({"builtins", "typing", "typing_extensions", "types", "numpy"})
"""Modules whose types are restored unchanged."""


SERIALIZABLE_TYPES: frozenset[type] = frozenset({str, int, float, bytes, re.Pattern, BaseMessage})
"""Classes whose values, and those of their subclasses, are equal after they are restored."""


def find_type_issues(graph: Graph, walk: GraphWalk) -> list[GraphIssue]:
    """Return the issues of the state types of a graph and its subgraphs."""
    known_types = graph.langgraph_adapter.state_types if graph.langgraph_adapter else ()
    issues: list[GraphIssue] = []
    for one in walk.graphs:
        builder = getattr(one.value, "builder", None)
        for schema in getattr(builder, "schemas", {}):
            issues += (
                _build_issue(graph, key, kind)
                for key, kind in iter_state_classes(schema)
                if not _is_restorable(kind, known_types)
            )
    return issues


def _is_restorable(kind: type, allowed: Sequence[type]) -> bool:
    if kind in (*allowed, BaseModel, object) or set(kind.__mro__) & SERIALIZABLE_TYPES:
        return True
    module = kind.__module__.partition(".")[0]
    return module in DATA_MODULES or (kind.__module__, kind.__name__) in SAFE_MSGPACK_TYPES or _is_abstract(kind)


def _is_abstract(kind: type) -> bool:
    """Return whether a class is a protocol or abstract, such as Sequence.

    Such a class does not show the class of the actual value.
    """
    return bool(getattr(kind, "__abstractmethods__", None)) or bool(getattr(kind, "_is_protocol", False))


def _build_issue(graph: Graph, key: str, kind: type) -> GraphIssue:
    why = f"It contains {kind.__name__}, which a checkpoint restores as plain data, not as an instance of its class."
    named = (
        f"Register the class: register_langgraph(…, state_types=({kind.__name__},))."
        if graph.langgraph_adapter
        else "Store plain data in it."
    )
    return GraphIssue(ERROR, "state-type", f"state key {key!r}", why, named)
