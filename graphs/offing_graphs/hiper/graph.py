"""The graph's shape: agent → act → agent … until an action ends the work or something says stop → report."""

from pathlib import Path
from typing import Any

from offing.sdk import Evidence, Graph, ReportDraft, RunContext, RunView, content_hash
from offing_graphs.hiper import extractive, nodes
from offing_graphs.hiper.roles import ROLES
from offing_graphs.hiper.state import State, start
from offing_graphs.parts import ROOMS
from offing_graphs.parts.findings import pieces


def build() -> Any:
    """The uncompiled LangGraph graph."""
    from langgraph.graph import END, START, StateGraph

    untyped: Any = StateGraph  # its stubs bound the context to dataclasses, and ours is a protocol
    graph = untyped(State, context_schema=RunContext)
    graph.add_node("agent", nodes.agent)
    graph.add_node("act", nodes.act)
    graph.add_node("report", nodes.report)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", _after_agent, ["act", "agent", "report"])
    graph.add_conditional_edges("act", _after_act, ["agent", "report"])
    graph.add_edge("report", END)
    return graph


async def _after_agent(state: State) -> str:
    """An answer to which a person had something to say is followed by another turn."""
    if state["stop"]:
        return "report"
    return "agent" if state["answer"] == state["said"] else "act"


async def _after_act(state: State) -> str:
    return "report" if state["stop"] else "agent"


def salvage(run: RunView, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """A report without a model, for a run that ended before its agent could write."""
    return extractive.salvage(run, pieces(evidence))


graph = Graph(
    name="hiper",
    title="HiPER",
    description="One agent that keeps or switches a subgoal and takes one action a turn, and writes a cited report.",
    version=content_hash(Path(__file__).parent, *ROOMS),
    build=build,
    start=start,
    roles=ROLES,
    turn_key="turn",
    salvage=salvage,
)
