"""Classes in a graph's state that a checkpoint gives back as plain data: a stored blob must not choose a class."""

import re
import typing
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from pydantic import BaseModel
from typing_extensions import is_typeddict

from offing.sdk import Graph
from offing.testing.checking.finding import ERROR, Finding
from offing.testing.checking.walking import Walk

DATA = frozenset({"builtins", "typing", "typing_extensions", "types", "numpy"})
"""Modules whose types come back as they were."""


AS_THEY_WERE: frozenset[type] = frozenset({str, int, float, bytes, re.Pattern, BaseMessage})
"""Values of these classes, and of those made of them, are equal to what comes back."""


def faults_of_types(graph: Graph, walk: Walk) -> list[Finding]:
    """Of the graph and those within it."""
    known = graph.plain.types if graph.plain else ()
    found: list[Finding] = []
    for one in walk.graphs:
        builder = getattr(one.value, "builder", None)
        for schema in getattr(builder, "schemas", {}):
            found += (_fault(graph, key, kind) for key, kind in classes_in(schema) if not _comes_back(kind, known))
    return found


def classes_in(schema: Any) -> Iterator[tuple[str, type]]:
    """Key and class of everything that a state's annotations name. Nothing of a pydantic state, which reads it anew."""
    if not isinstance(schema, type) or issubclass(schema, BaseModel):
        return
    owner = cast(Any, schema)
    for key, hint in _hints(owner).items():
        for kind in _named_in(hint, (owner,)):
            yield key, kind


def _hints(schema: type) -> dict[str, Any]:
    try:
        return get_type_hints(schema, include_extras=True)
    except (NameError, TypeError):
        return {}  # a name that only a type checker has


def _named_in(hint: Any, outer: tuple[Any, ...]) -> Iterator[type]:
    if get_origin(hint) is Annotated:
        yield from _named_in(get_args(hint)[0], outer)
    elif get_origin(hint) is typing.Literal or any(hint is one for one in outer):
        return
    elif arguments := get_args(hint):
        for argument in arguments:
            yield from _named_in(argument, outer)
    elif is_typeddict(hint):
        for inner in _hints(hint).values():
            yield from _named_in(inner, (*outer, hint))
    elif isinstance(hint, type):
        yield hint


def _comes_back(kind: type, known: Sequence[type]) -> bool:
    if kind in (*known, BaseModel, object) or set(kind.__mro__) & AS_THEY_WERE:
        return True
    module = kind.__module__.partition(".")[0]
    return module in DATA or (kind.__module__, kind.__name__) in SAFE_MSGPACK_TYPES or _is_abstract(kind)


def _is_abstract(kind: type) -> bool:
    """A protocol or an abstract class, such as Sequence, says nothing of what is there."""
    return bool(getattr(kind, "__abstractmethods__", None)) or bool(getattr(kind, "_is_protocol", False))


def _fault(graph: Graph, key: str, kind: type) -> Finding:
    why = f"It holds {kind.__name__}, which comes back from a checkpoint as plain data, without its class."
    named = f"Name it: plain_graph(…, state_types=({kind.__name__},))." if graph.plain else "Keep plain data there."
    return Finding(ERROR, "state-type", f"state key {key!r}", why, named)
