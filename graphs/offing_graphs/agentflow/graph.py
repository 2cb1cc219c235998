"""The graph's shape: analyse → (planner → executor → verifier) until something says stop → generator."""

from pathlib import Path
from typing import Any

from offing.sdk import Evidence, Graph, ReportDraft, RunContext, RunView, content_hash
from offing_graphs.agentflow import extractive, nodes
from offing_graphs.agentflow.roles import ROLES
from offing_graphs.agentflow.state import State, start
from offing_graphs.parts import ROOMS
from offing_graphs.parts.ending import unless_stopped
from offing_graphs.parts.findings import pieces


def build() -> Any:
    """The uncompiled LangGraph graph."""
    from langgraph.graph import END, START, StateGraph

    untyped: Any = StateGraph  # its stubs bound the context to dataclasses, and ours is a protocol
    graph = untyped(State, context_schema=RunContext)
    graph.add_node("analyse", nodes.analyse)
    graph.add_node("planner", nodes.planner)
    graph.add_node("executor", nodes.executor)
    graph.add_node("verifier", nodes.verifier)
    graph.add_node("generator", nodes.generator)
    graph.add_edge(START, "analyse")
    for node, following in (("analyse", "planner"), ("planner", "executor"), ("executor", "verifier")):
        graph.add_conditional_edges(node, unless_stopped(following, "generator"), [following, "generator"])
    graph.add_conditional_edges("verifier", unless_stopped("planner", "generator"), ["planner", "generator"])
    graph.add_edge("generator", END)
    return graph


def salvage(run: RunView, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """A report without a model, for a run that ended before its generator could write."""
    return extractive.salvage(run, pieces(evidence))


graph = Graph(
    name="agentflow",
    title="AgentFlow",
    description="Analyses the question, then plans, acts and verifies turn by turn, and writes a cited report.",
    version=content_hash(Path(__file__).parent, *ROOMS),
    build=build,
    start=start,
    roles=ROLES,
    turn_key="turn",
    salvage=salvage,
)
