"""The graph's shape: route → look, look part by part, or AgentFlow's loop → generator."""

from pathlib import Path
from typing import Any

from offing.sdk import Graph, RunContext, content_hash
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.agentflow import nodes as loop
from offing_graphs.parts import ROOMS
from offing_graphs.parts.ending import unless_stopped
from offing_graphs.router import nodes
from offing_graphs.router.modes import Mode
from offing_graphs.router.roles import ROLES
from offing_graphs.router.state import State, start

HERE = Path(__file__).parent


def build() -> Any:
    """The uncompiled LangGraph graph."""
    from langgraph.graph import END, START, StateGraph

    untyped: Any = StateGraph  # its stubs bound the context to dataclasses, and ours is a protocol
    graph = untyped(State, context_schema=RunContext)
    graph.add_node("route", nodes.route)
    graph.add_node("look", nodes.look)
    for node in (loop.analyse, loop.planner, loop.executor, loop.verifier, loop.generator):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "route")
    graph.add_conditional_edges("route", _first, ["look", "analyse", "generator"])
    graph.add_conditional_edges("analyse", _second, ["look", "planner", "generator"])
    graph.add_conditional_edges("look", _after_a_look, ["look", "analyse", "planner", "generator"])
    for node, following in (("planner", "executor"), ("executor", "verifier"), ("verifier", "planner")):
        graph.add_conditional_edges(node, unless_stopped(following, "generator"), [following, "generator"])
    graph.add_edge("generator", END)
    return graph


async def _first(state: State) -> str:
    return "generator" if state["stop"] else "look" if state["mode"] == Mode.INSTANT else "analyse"


async def _second(state: State) -> str:
    return "generator" if state["stop"] else "look" if state["mode"] == Mode.REASONING else "planner"


async def _after_a_look(state: State) -> str:
    if state["stop"]:
        return "generator"
    if state["mode"] != Mode.AGENTIC:
        return "look"
    return "planner" if state["analysis"] else "analyse"


graph = Graph(
    name="router",
    title="Router",
    description="Weighs what a question is worth: an answer at once, a look for each part, or the whole loop.",
    version=content_hash(HERE, HERE.parent / "agentflow", *ROOMS),
    build=build,
    start=start,
    roles=ROLES,
    turn_key="turn",
    salvage=agentflow.salvage,
)
