"""The graph: route, then one search, one search per part, or AgentFlow's loop, then generator."""

from typing import Any

from offing.sdk import Graph, StateView
from offing_graphs.agentflow import nodes as loop
from offing_graphs.agentflow.roles import GENERATOR
from offing_graphs.router import nodes
from offing_graphs.router.roles import ROLES
from offing_graphs.router.schemas import Mode
from offing_graphs.router.state import State
from offing_graphs.shared.claim_check import CHECKER
from offing_graphs.shared.follow_up import add_follow_up
from offing_graphs.shared.graph import build_stop_router, compute_version, create_state_graph
from offing_graphs.shared.report import build_fallback_report
from offing_graphs.shared.state import build_initial_state


def build() -> Any:
    """Return the uncompiled LangGraph graph."""
    from langgraph.graph import END

    graph = create_state_graph(State)
    graph.add_node("route", nodes.route)
    graph.add_node("search", nodes.search)
    for node in (loop.analyze, loop.planner, loop.executor, loop.verifier, loop.generator):
        graph.add_node(node.__name__, node)
    add_follow_up(graph, "route", GENERATOR)
    graph.add_conditional_edges("route", _route_after_mode, ["search", "analyze", "generator"])
    graph.add_conditional_edges("analyze", _route_after_analysis, ["search", "planner", "generator"])
    graph.add_conditional_edges("search", _route_after_search, ["search", "analyze", "planner", "generator"])
    for node, following in (("planner", "executor"), ("executor", "verifier"), ("verifier", "planner")):
        graph.add_conditional_edges(node, build_stop_router(following, "generator"), [following, "generator"])
    graph.add_edge("generator", END)
    return graph


async def _route_after_mode(state: State) -> str:
    return "generator" if state["stop"] else "search" if state["mode"] == Mode.INSTANT else "analyze"


async def _route_after_analysis(state: State) -> str:
    return "generator" if state["stop"] else "search" if state["mode"] == Mode.REASONING else "planner"


async def _route_after_search(state: State) -> str:
    if state["stop"]:
        return "generator"
    if state["mode"] != Mode.AGENTIC:
        return "search"
    return "planner" if state["analysis"] else "analyze"


graph = Graph(
    name="router",
    title="Router",
    description="Estimates how much work a question needs: an immediate answer, one search per part, or the full loop.",
    version=compute_version("router", "agentflow"),
    build=build,
    initial_state=build_initial_state(State),
    roles=ROLES,
    optional_roles=(CHECKER,),
    turn_counter="turn",
    fallback_report=build_fallback_report,
    handles_follow_ups=True,
    has_editable_plan=True,
    state_view=StateView.MEMORY,
)
