"""The graph: research and act in turns until an answer or a stop reason, then write."""

from typing import Any

from offing.sdk import Graph, StateView
from offing_graphs.iterresearch import nodes
from offing_graphs.iterresearch.roles import RESEARCHERS_BY_PHASE, ROLES
from offing_graphs.iterresearch.schemas import TurnPhase
from offing_graphs.iterresearch.state import State
from offing_graphs.shared.claim_check import CHECKER
from offing_graphs.shared.follow_up import add_follow_up
from offing_graphs.shared.graph import build_stop_router, compute_version, create_state_graph
from offing_graphs.shared.report import build_fallback_report
from offing_graphs.shared.state import build_initial_state


def build() -> Any:
    """Return the uncompiled LangGraph graph."""
    from langgraph.graph import END

    graph = create_state_graph(State)
    graph.add_node("research", nodes.research)
    graph.add_node("act", nodes.act)
    graph.add_node("write", nodes.write)
    add_follow_up(graph, "research", RESEARCHERS_BY_PHASE[TurnPhase.FINAL])
    graph.add_conditional_edges("research", build_stop_router("act", "write"), ["act", "write"])
    graph.add_conditional_edges("act", build_stop_router("research", "write"), ["research", "write"])
    graph.add_edge("write", END)
    return graph


graph = Graph(
    name="iterresearch",
    title="IterResearch",
    description="One agent that rewrites its report in each round and sees only that report, for any number of rounds.",
    version=compute_version("iterresearch"),
    build=build,
    initial_state=build_initial_state(State),
    roles=ROLES,
    optional_roles=(CHECKER,),
    turn_counter="turn",
    fallback_report=build_fallback_report,
    handles_follow_ups=True,
    state_view=StateView.VERSIONS,
)
