"""The graph's shape: agent → tool or memory → agent until it answers; `supo` sums up instead of editing."""

from functools import partial
from pathlib import Path
from typing import Any

from offing.sdk import Graph, RunContext, content_hash
from offing_graphs.memact.config import EDITING, SUMMING_UP, Config
from offing_graphs.memact.nodes import Nodes
from offing_graphs.memact.roles import ROLES
from offing_graphs.memact.state import State, start
from offing_graphs.memact.writing import salvage
from offing_graphs.parts import ROOMS


def build(config: Config = EDITING) -> Any:
    """The uncompiled LangGraph graph; its shape is the same for every configuration."""
    from langgraph.graph import END, START, StateGraph

    untyped: Any = StateGraph  # its stubs bound the context to dataclasses, and ours is a protocol
    graph, nodes = untyped(State, context_schema=RunContext), Nodes(config)
    graph.add_node("agent", nodes.agent)
    graph.add_node("tool", nodes.tool)
    graph.add_node("memory", nodes.memory)
    graph.add_node("summarise", nodes.summarise)
    graph.add_node("finish", nodes.finish)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", _next, ["tool", "memory", "finish"])
    graph.add_conditional_edges("tool", _next, ["agent", "summarise", "finish"])
    graph.add_conditional_edges("memory", _next, ["agent", "summarise", "finish"])
    graph.add_conditional_edges("summarise", _next, ["agent", "finish"])
    graph.add_edge("finish", END)
    return graph


async def _next(state: State) -> str:
    return "finish" if state["stop"] else state["next"] or "agent"


def configured(name: str, title: str, description: str, config: Config) -> Graph:
    """The flow with its own limits, under a name of its own."""
    return Graph(
        name=name,
        title=title,
        description=description,
        version=content_hash(Path(__file__).parent, *ROOMS),
        build=partial(build, config),
        start=start,
        roles=ROLES,
        turn_key="turn",
        salvage=salvage,
    )


graph = configured(
    "memact",
    "Memory as action",
    "One agent that works with tools and edits its own context: it removes records and keeps notes of them.",
    EDITING,
)
supo = configured(
    "supo",
    "Summarise when full",
    "One agent that works with tools and, when its context is full, goes on from a summary that it writes.",
    SUMMING_UP,
)
