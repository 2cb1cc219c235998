"""Walk over a compiled graph: the values that each of its nodes can reach, and the code of its author.

Attributes are read, and nothing is run.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, cast

from langchain_core.language_models import BaseLanguageModel
from langgraph.pregel import Pregel
from pydantic import BaseModel

from offing.testing.graph_checks.source_reader import UNRESOLVED, SourceFunction, find_package, read_source

FRAMEWORK_PACKAGES = frozenset(
    {"langgraph", "langchain", "langchain_core", "langchain_community", "langsmith", "offing", "pydantic"}
) | frozenset(sys.stdlib_module_names)
"""Packages that are not the author's. Only captured values of their functions are inspected."""

CLIENT_PACKAGES = frozenset(
    {"anthropic", "cohere", "google.genai", "google.generativeai", "groq", "litellm", "mistralai", "ollama", "openai"}
)
"""Packages whose objects and functions call a provider."""

ATOMIC_TYPES = (str, bytes, int, float, bool, complex, type(None), ModuleType)

MAX_VALUES = 20_000
"""Maximum number of values per node."""


@dataclass(frozen=True, slots=True, eq=False)
class ReachedValue:
    """A value, or the source of a function, that a node reaches."""

    node: str
    """Name of the node, with the names of its parent graphs."""
    value: Any


@dataclass(slots=True)
class GraphWalk:
    """Everything that a compiled graph reaches."""

    graph: Pregel[Any, Any, Any, Any]
    values: list[ReachedValue] = field(default_factory=list[ReachedValue])
    sources: list[SourceFunction] = field(default_factory=list[SourceFunction])
    """Sources of its functions: the author's, and those of packages whose graphs or tools are parts of it."""
    _named_values: dict[Any, list[Any]] = field(default_factory=dict[Any, list[Any]])

    def __post_init__(self) -> None:
        self._walk_graph(self.graph, "", frozenset())

    @property
    def graphs(self) -> list[ReachedValue]:
        """Graphs: the graph itself and its subgraphs, each with the node that reaches it."""
        return [ReachedValue("", self.graph), *(one for one in self.values if isinstance(one.value, Pregel))]

    @property
    def own_sources(self) -> list[SourceFunction]:
        """Sources that the graph's author can change, without those of installed packages."""
        return [one for one in self.sources if not one.installed]

    def _walk_graph(self, graph: Any, around: str, outer: frozenset[int]) -> None:
        if id(graph) in outer:
            return
        for name, node in graph.nodes.items():
            if name != "__start__":
                path = f"{around} > {name}" if around else name
                self._walk_node(node, path, outer | {id(graph)})

    def _walk_node(self, node: Any, path: str, outer: frozenset[int]) -> None:
        waiting: list[Any] = [node]
        seen: dict[int, Any] = {}
        while waiting and len(seen) < MAX_VALUES:
            value = waiting.pop()
            if isinstance(value, ATOMIC_TYPES) or id(value) in seen:
                continue
            seen[id(value)] = value  # kept alive, so that no other value gets the same id
            self.values.append(ReachedValue(path, value))
            if isinstance(value, Pregel):
                self._walk_graph(value, path, outer)
            elif isinstance(value, FunctionType):
                waiting += self._iter_function_values(value)
            elif not is_model(value):
                waiting += list_parts(value)

    def _iter_function_values(self, function: FunctionType) -> Iterator[Any]:
        """Yield the captured values of a function and the values that its code names.

        Nothing is yielded for a durable call.
        """
        if is_durable(function):
            return
        yield from _iter_captured(function)
        if find_package(function) in FRAMEWORK_PACKAGES:
            return
        if function.__code__ not in self._named_values:
            source = read_source(function)
            self._named_values[function.__code__] = list_named_values(source) if source else []
            self.sources += [source] if source else []
        yield from self._named_values[function.__code__]


def is_model(value: Any) -> bool:
    """Return whether a value calls a provider. Its parts are then not inspected."""
    return isinstance(value, BaseLanguageModel) or is_client_class(get_class_name(value))


def get_class_name(value: Any) -> str:
    kind = cast(Any, type(value))
    return f"{kind.__module__}.{kind.__qualname__}"


def is_client_class(name: str) -> bool:
    """Return whether a full name belongs to a provider's client."""
    return any(name.startswith(f"{package}.") for package in CLIENT_PACKAGES)


def list_parts(value: Any) -> list[Any]:
    """Return the parts of a value: elements, attributes, and what a method or a partial call consists of."""
    match value:
        case dict():
            return list(cast(Mapping[Any, Any], value).values())
        case list() | tuple() | set() | frozenset():
            return list(cast(list[Any], value))
        case MethodType():
            return [value.__func__, value.__self__]
        case partial():
            partial_function = cast("partial[Any]", value)
            return [partial_function.func, *partial_function.args, *partial_function.keywords.values()]
        case type():
            return []
        case _:
            return (
                _list_attributes(value)
                if type(value).__module__.partition(".")[0] not in sys.stdlib_module_names
                else []
            )


def list_named_values(source: SourceFunction) -> list[Any]:
    """Return the values that a function's code names, with functions only of its own package."""
    names = (node for node in ast.walk(source.tree) if isinstance(node, ast.Name | ast.Attribute))
    values = [value for node in names if (value := source.resolve(node)) is not UNRESOLVED]
    return [one for one in values if not isinstance(one, FunctionType) or find_package(one) == source.package]


def is_durable(function: Any) -> bool:
    """Return whether the results of a function are recorded, so that it need not be deterministic."""
    from offing.langchain import durable_call

    return function.__code__.co_filename == durable_call.__code__.co_filename


def _iter_captured(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # the cell is still empty
    yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())


def _list_attributes(value: Any) -> list[Any]:
    values = list(getattr(value, "__dict__", {}).values())
    if isinstance(value, BaseModel):
        values += (value.__pydantic_private__ or {}).values()
    kinds: tuple[type, ...] = type(value).__mro__
    slots = (name for one in kinds for name in _list_slots(one))
    return values + [getattr(value, name) for name in slots if hasattr(value, name)]


def _list_slots(owner: type) -> tuple[str, ...]:
    names: Any = owner.__dict__.get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(name for name in names if not name.startswith("__"))
