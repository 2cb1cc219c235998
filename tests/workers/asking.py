"""Graphs that wait for a person: by LangGraph's own interrupt, and through the run's context."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START
from langgraph.types import interrupt

from offing.sdk import Graph, RunContext
from tests.workers.graphs import untyped

NAMES = ("plain_ask", "plain_twice", "plain_branches")

GRAPHS = ",".join(f"tests.workers.asking:{name}" for name in NAMES)


class Heard(TypedDict):
    heard: Annotated[list[str], operator.add]


def _registered(name: str, build: Any) -> Graph:
    return Graph(name, name, "Waits for a person.", f"{name}-1", build, lambda _: {"heard": []}, ())


async def _ask(_: Heard) -> dict[str, Any]:
    return {"heard": [f"got {interrupt({'question': 'Which one?', 'of': [1, 2]})!r}"]}


async def _ask_twice(_: Heard) -> dict[str, Any]:
    first = interrupt("First?")
    return {"heard": [f"{first} then {interrupt('Second?')}"]}


async def _quiet(_: Heard) -> dict[str, Any]:
    return {"heard": ["quiet"]}


def _alone(node: Any) -> Any:
    def build() -> Any:
        graph = untyped(Heard, context_schema=RunContext)
        graph.add_node("ask", node)
        graph.add_edge(START, "ask")
        graph.add_edge("ask", END)
        return graph

    return build


def _branched() -> Any:
    graph = untyped(Heard, context_schema=RunContext)
    for name, node in (("one", _ask), ("two", _ask_twice), ("three", _quiet), ("last", _quiet)):
        graph.add_node(name, node)
    for name in ("one", "two", "three"):
        graph.add_edge(START, name)
    graph.add_edge(["one", "two", "three"], "last")
    graph.add_edge("last", END)
    return graph


plain_ask = _registered("plain_ask", _alone(_ask))
plain_twice = _registered("plain_twice", _alone(_ask_twice))
plain_branches = _registered("plain_branches", _branched)
