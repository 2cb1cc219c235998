"""Check for classes in a graph's state that a checkpoint restores as plain data.

Stored bytes must not choose a class.
"""

import re
import typing
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from pydantic import BaseModel
from typing_extensions import is_typeddict

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


def iter_state_classes(schema: Any) -> Iterator[tuple[str, type]]:
    """Yield key and class of everything that a state's annotations name.

    Nothing is yielded for a pydantic state, which is validated again when it is restored.
    """
    if not isinstance(schema, type) or issubclass(schema, BaseModel):
        return
    owner = cast(Any, schema)
    for key, annotation in _get_type_hints(owner).items():
        for kind in _iter_named_types(annotation, (owner,)):
            yield key, kind


def _get_type_hints(schema: type) -> dict[str, Any]:
    try:
        return get_type_hints(schema, include_extras=True)
    except (NameError, TypeError):
        return {}  # a name that exists only for type checkers


def _iter_named_types(annotation: Any, context: tuple[Any, ...]) -> Iterator[type]:
    if get_origin(annotation) is Annotated:
        yield from _iter_named_types(get_args(annotation)[0], context)
    elif get_origin(annotation) is typing.Literal or any(annotation is one for one in context):
        return
    elif arguments := get_args(annotation):
        for argument in arguments:
            yield from _iter_named_types(argument, context)
    elif is_typeddict(annotation):
        for inner in _get_type_hints(annotation).values():
            yield from _iter_named_types(inner, (*context, annotation))
    elif isinstance(annotation, type):
        yield annotation


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
