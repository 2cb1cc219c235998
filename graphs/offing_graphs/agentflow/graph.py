"""The graph: analyze, then planner, executor and verifier in turns until a stop, then generator."""

from typing import Any

from offing.sdk import Graph, Interaction, StateView
from offing_graphs.agentflow import nodes
from offing_graphs.agentflow.roles import GENERATOR, ROLES
from offing_graphs.agentflow.state import State
from offing_graphs.shared.claim_check import CHECKER
from offing_graphs.shared.follow_up import add_follow_up
from offing_graphs.shared.graph import build_stop_router, compute_version, create_state_graph
from offing_graphs.shared.report import build_fallback_report
from offing_graphs.shared.state import build_initial_state


def build() -> Any:
    """Return the uncompiled LangGraph graph."""
    from langgraph.graph import END

    graph = create_state_graph(State)
    graph.add_node("analyze", nodes.analyze)
    graph.add_node("planner", nodes.planner)
    graph.add_node("executor", nodes.executor)
    graph.add_node("verifier", nodes.verifier)
    graph.add_node("generator", nodes.generator)
    add_follow_up(graph, "analyze", GENERATOR)
    for node, following in (("analyze", "planner"), ("planner", "executor"), ("executor", "verifier")):
        graph.add_conditional_edges(node, build_stop_router(following, "generator"), [following, "generator"])
    graph.add_conditional_edges("verifier", build_stop_router("planner", "generator"), ["planner", "generator"])
    graph.add_edge("generator", END)
    return graph


graph = Graph(
    name="agentflow",
    title="AgentFlow",
    description="Analyzes the question, then plans, acts and verifies in turns, and writes a cited report.",
    version=compute_version("agentflow"),
    build=build,
    initial_state=build_initial_state(State),
    roles=ROLES,
    optional_roles=(CHECKER,),
    turn_counter="turn",
    fallback_report=build_fallback_report,
    handles_follow_ups=True,
    interactions=(Interaction.CLARIFY, Interaction.PLAN_REVIEW),
    state_view=StateView.MEMORY,
)
