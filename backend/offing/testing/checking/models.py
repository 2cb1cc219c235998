"""Models that are asked past the run: their calls are not on record, not limited, and paid again after a loss."""

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from langchain_core.language_models import BaseLanguageModel

from offing.langchain import OffingChatModel
from offing.sdk import Graph
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.reading import Source, named
from offing.testing.checking.walking import Walk, class_name, is_model, is_of_client

BY_NAME = frozenset({"langchain.chat_models.base.init_chat_model", "langchain.chat_models.base._ConfigurableModel"})
"""What makes a model of its name."""

WHY = "whose calls go past the run: not on record, not limited, and paid again after a loss."
REMEDY = 'Use OffingChatModel("agent") in its place; which provider answers it is said by the engine of that name.'
REMEDY_BY_NAME = "Say which of `models=` stands for it: plain_graph(…, by_name={…})."


def faults_of_models(graph: Graph, walk: Walk) -> list[Finding]:
    """Models of others, by the node that reaches them, and ours under names that the graph does not declare."""
    swaps = _swaps_by_name(graph)
    roles = {role.name for role in graph.roles}
    found: list[Finding] = []
    for one in walk.values:
        value, place = one.value, f"node {one.node!r}"
        if isinstance(value, OffingChatModel):
            if value.role not in roles:
                why = f"It asks OffingChatModel({value.role!r}), which the graph does not declare."
                found.append(Finding(ERROR, "undeclared-role", place, why, "Name it in `models=` of plain_graph."))
        elif name := _foreign(value, swaps):
            remedy = REMEDY_BY_NAME if class_name(value) in BY_NAME else REMEDY
            found.append(Finding(ERROR, "foreign-model", place, f"It asks {name}, {WHY}", remedy))
    for source in walk.sources:
        found += (_made(source, *call) for call in _making(source, swaps))
    return found


def _foreign(value: Any, swaps: bool) -> str:
    """The class of a model, or of a provider's client, that is not ours. Empty: it is none."""
    name = class_name(value)
    if name in BY_NAME:
        return "" if swaps else "a model that is chosen by name"
    return name.rpartition(".")[2] if is_model(value) else ""


def _making(source: Source, swaps: bool) -> Iterator[tuple[ast.Call, str]]:
    """Calls that make a model, or ask a provider, with what they call."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        value: Any = source.value(node.func)
        full = named(node.func, source)
        makes = isinstance(value, type) and issubclass(value, BaseLanguageModel) and value is not OffingChatModel
        if makes or (full in BY_NAME and not swaps) or is_of_client(full):
            yield node, full.rpartition(".")[2]


def _made(source: Source, call: ast.Call, name: str) -> Finding:
    """In an installed package's code it may never be called."""
    level, what = (WARNING, f"can call {name}") if source.installed else (ERROR, f"calls {name}")
    remedy = REMEDY_BY_NAME if named(call.func, source) in BY_NAME else REMEDY
    return Finding(level, "foreign-model", source.place(call), f"It {what}, {WHY}", remedy)


def _swaps_by_name(graph: Graph) -> bool:
    """Whether models that the graph's code names are ours in its runs."""
    around: Any = getattr(graph.plain, "around", None)
    return isinstance(around, partial) and any(around.args)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
