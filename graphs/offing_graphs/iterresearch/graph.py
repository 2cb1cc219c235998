"""The graph's shape: research → act → research … until a round answers or something says stop → write."""

from pathlib import Path
from typing import Any

from offing.sdk import Evidence, Graph, ReportDraft, RunContext, RunView, content_hash
from offing_graphs.iterresearch import endings, nodes
from offing_graphs.iterresearch.roles import ROLES
from offing_graphs.iterresearch.state import State, start
from offing_graphs.parts import ROOMS
from offing_graphs.parts.ending import unless_stopped
from offing_graphs.parts.findings import pieces


def build() -> Any:
    """The uncompiled LangGraph graph."""
    from langgraph.graph import END, START, StateGraph

    untyped: Any = StateGraph  # its stubs bound the context to dataclasses, and ours is a protocol
    graph = untyped(State, context_schema=RunContext)
    graph.add_node("research", nodes.research)
    graph.add_node("act", nodes.act)
    graph.add_node("write", nodes.write)
    graph.add_edge(START, "research")
    graph.add_conditional_edges("research", unless_stopped("act", "write"), ["act", "write"])
    graph.add_conditional_edges("act", unless_stopped("research", "write"), ["research", "write"])
    graph.add_edge("write", END)
    return graph


def salvage(run: RunView, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """A report without a model, for a run that ended before it could write one."""
    return endings.salvage(run, pieces(evidence))


graph = Graph(
    name="iterresearch",
    title="IterResearch",
    description="One researcher that rewrites its report each round and sees nothing older, for any number of rounds.",
    version=content_hash(Path(__file__).parent, *ROOMS),
    build=build,
    start=start,
    roles=ROLES,
    turn_key="turn",
    salvage=salvage,
)
