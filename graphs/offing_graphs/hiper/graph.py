"""The graph: agent and act in turns until a final action or a stop reason, then report."""

from typing import Any

from offing.sdk import Graph, StateView
from offing_graphs.hiper import nodes
from offing_graphs.hiper.roles import AGENT, ROLES
from offing_graphs.hiper.state import State
from offing_graphs.shared.claim_check import CHECKER
from offing_graphs.shared.follow_up import add_follow_up
from offing_graphs.shared.graph import compute_version, create_state_graph
from offing_graphs.shared.report import build_fallback_report
from offing_graphs.shared.state import build_initial_state


def build() -> Any:
    """Return the uncompiled LangGraph graph."""
    from langgraph.graph import END

    graph = create_state_graph(State)
    graph.add_node("agent", nodes.agent)
    graph.add_node("act", nodes.act)
    graph.add_node("report", nodes.report)
    add_follow_up(graph, "agent", AGENT)
    graph.add_conditional_edges("agent", _route_after_agent, ["act", "agent", "report"])
    graph.add_conditional_edges("act", _route_after_act, ["agent", "report"])
    graph.add_edge("report", END)
    return graph


async def _route_after_agent(state: State) -> str:
    """Return the next node. If a user message arrived during an answer, another turn follows."""
    if state["stop"]:
        return "report"
    return "agent" if state["answer"] == state["output_seq"] else "act"


async def _route_after_act(state: State) -> str:
    return "report" if state["stop"] else "agent"


graph = Graph(
    name="hiper",
    title="HiPER",
    description="One agent that keeps or switches a subgoal and takes one action per turn, and writes a cited report.",
    version=compute_version("hiper"),
    build=build,
    initial_state=build_initial_state(State),
    roles=ROLES,
    optional_roles=(CHECKER,),
    turn_counter="turn",
    fallback_report=build_fallback_report,
    handles_follow_ups=True,
    state_view=StateView.SUBGOALS,
)
