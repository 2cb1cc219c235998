"""What a compiled graph is made of: the values that each of its nodes can reach, and the code of its author's.

The only home of that walk. Reads attributes and runs nothing; knows no rule.
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

from offing.testing.checking.reading import UNKNOWN, Source, package_of, source_of

FRAMEWORKS = frozenset(
    {"langgraph", "langchain", "langchain_core", "langchain_community", "langsmith", "offing", "pydantic"}
) | frozenset(sys.stdlib_module_names)
"""Packages whose own code is not an author's: of their functions only what they were given is looked at."""

CLIENTS = frozenset(
    {"anthropic", "cohere", "google.genai", "google.generativeai", "groq", "litellm", "mistralai", "ollama", "openai"}
)
"""Packages whose objects and functions ask a provider."""

PLAIN = (str, bytes, int, float, bool, complex, type(None), ModuleType)

MOST = 20_000
"""Values of a node."""


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """A value, or the code of a function, at a node."""

    node: str
    """Its name, with those of the graphs around it."""
    value: Any


@dataclass(slots=True)
class Walk:
    """Everything that a compiled graph reaches."""

    graph: Pregel[Any, Any, Any, Any]
    values: list[Reached] = field(default_factory=list[Reached])
    sources: list[Source] = field(default_factory=list[Source])
    """The code of its functions, its author's and that of packages whose graphs or tools are parts of it."""
    _named: dict[Any, list[Any]] = field(default_factory=dict[Any, list[Any]])

    def __post_init__(self) -> None:
        self._graph(self.graph, "", frozenset())

    @property
    def graphs(self) -> list[Reached]:
        """The graph itself and those within it, each with the node that it is reached from."""
        return [Reached("", self.graph), *(one for one in self.values if isinstance(one.value, Pregel))]

    @property
    def own_sources(self) -> list[Source]:
        """The code that the graph's author can change: none of it is of an installed package."""
        return [one for one in self.sources if not one.installed]

    def _graph(self, graph: Any, around: str, outer: frozenset[int]) -> None:
        if id(graph) in outer:
            return
        for name, node in graph.nodes.items():
            if name != "__start__":
                place = f"{around} > {name}" if around else name
                self._node(node, place, outer | {id(graph)})

    def _node(self, node: Any, place: str, outer: frozenset[int]) -> None:
        waiting: list[Any] = [node]
        seen: dict[int, Any] = {}
        while waiting and len(seen) < MOST:
            value = waiting.pop()
            if isinstance(value, PLAIN) or id(value) in seen:
                continue
            seen[id(value)] = value  # kept, so that no other value gets its id
            self.values.append(Reached(place, value))
            if isinstance(value, Pregel):
                self._graph(value, place, outer)
            elif isinstance(value, FunctionType):
                waiting += self._function(value)
            elif not is_model(value):
                waiting += parts(value)

    def _function(self, function: FunctionType) -> Iterator[Any]:
        """What it was given when it was made, and what its author's code names. None, if its result is on record."""
        if is_journalled(function):
            return
        yield from _given(function)
        if package_of(function) in FRAMEWORKS:
            return
        if function.__code__ not in self._named:
            source = source_of(function)
            self._named[function.__code__] = named_values(source) if source else []
            self.sources += [source] if source else []
        yield from self._named[function.__code__]


def is_model(value: Any) -> bool:
    """Whether it is what asks a provider: its own parts are of no interest."""
    return isinstance(value, BaseLanguageModel) or is_of_client(class_name(value))


def class_name(value: Any) -> str:
    kind = cast(Any, type(value))
    return f"{kind.__module__}.{kind.__qualname__}"


def is_of_client(name: str) -> bool:
    """Whether a full name is one of a provider's client."""
    return any(name.startswith(f"{package}.") for package in CLIENTS)


def parts(value: Any) -> list[Any]:
    """What a value holds: elements, attributes, and what a method or a partial call is made of."""
    match value:
        case dict():
            return list(cast(Mapping[Any, Any], value).values())
        case list() | tuple() | set() | frozenset():
            return list(cast(list[Any], value))
        case MethodType():
            return [value.__func__, value.__self__]
        case partial():
            held = cast("partial[Any]", value)
            return [held.func, *held.args, *held.keywords.values()]
        case type():
            return []
        case _:
            return _attributes(value) if type(value).__module__.partition(".")[0] not in sys.stdlib_module_names else []


def named_values(source: Source) -> list[Any]:
    """The values that a function's code names: of functions only those of its own package."""
    names = (node for node in ast.walk(source.tree) if isinstance(node, ast.Name | ast.Attribute))
    found = [value for node in names if (value := source.value(node)) is not UNKNOWN]
    return [one for one in found if not isinstance(one, FunctionType) or package_of(one) == source.package]


def is_journalled(function: Any) -> bool:
    """Whether what it returns is on record, so that it may do what it likes."""
    from offing.langchain import journal

    return function.__code__.co_filename == journal.__file__


def _given(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # it is empty as yet
    yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())


def _attributes(value: Any) -> list[Any]:
    found = list(getattr(value, "__dict__", {}).values())
    if isinstance(value, BaseModel):
        found += (value.__pydantic_private__ or {}).values()
    kinds: tuple[type, ...] = type(value).__mro__
    slots = (name for one in kinds for name in _slots(one))
    return found + [getattr(value, name) for name in slots if hasattr(value, name)]


def _slots(owner: type) -> tuple[str, ...]:
    names: Any = owner.__dict__.get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(name for name in names if not name.startswith("__"))
