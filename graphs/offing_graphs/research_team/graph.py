"""The graph: plan, then a loop for each part, then verify and write."""

from functools import partial
from typing import Any

from offing.sdk import Graph, StateView
from offing_graphs.agentflow.roles import GENERATOR
from offing_graphs.research_team.nodes import TeamConfig, TeamNodes
from offing_graphs.research_team.roles import ROLES
from offing_graphs.research_team.state import State
from offing_graphs.shared.claim_check import CHECKER
from offing_graphs.shared.follow_up import add_follow_up
from offing_graphs.shared.graph import build_stop_router, compute_version, create_state_graph
from offing_graphs.shared.report import build_fallback_report
from offing_graphs.shared.state import build_initial_state


def build(config: TeamConfig) -> Any:
    """Return the uncompiled LangGraph graph."""
    from langgraph.graph import END

    graph, nodes = create_state_graph(State), TeamNodes(config)
    for node in (nodes.plan, nodes.review, nodes.delegate, nodes.planner, nodes.executor, nodes.assess, nodes.verify):
        graph.add_node(node.__name__, node)
    graph.add_node("write", nodes.write)
    add_follow_up(graph, "plan", GENERATOR)
    graph.add_conditional_edges("plan", build_stop_router("review", "write"), ["review", "write"])
    graph.add_conditional_edges("review", _route_after_review, ["plan", "delegate", "write"])
    graph.add_conditional_edges("delegate", _route_after_team, ["planner", "verify", "write"])
    graph.add_conditional_edges("planner", build_stop_router("executor", "write"), ["executor", "write"])
    graph.add_conditional_edges("executor", _route_after_call, ["assess", "verify", "write"])
    graph.add_conditional_edges("assess", _route_after_part, ["planner", "verify", "write"])
    graph.add_conditional_edges("verify", build_stop_router("planner", "write"), ["planner", "write"])
    graph.add_edge("write", END)
    return graph


async def _route_after_review(state: State) -> str:
    return "write" if state["stop"] else "plan" if state["replan"] else "delegate"


async def _route_after_team(state: State) -> str:
    """Return the next node.

    Results of child runs are verified; without them the first part begins.
    """
    return "write" if state["stop"] else "verify" if state["team"] else "planner"


async def _route_after_call(state: State) -> str:
    return "write" if state["stop"] else "assess" if state["part"] < state["parts"] else "verify"


async def _route_after_part(state: State) -> str:
    return "write" if state["stop"] else "planner" if state["part"] < state["parts"] else "verify"


def configure_graph(name: str, config: TeamConfig, title: str = "Research team") -> Graph:
    """Return the graph with options, under its own name."""
    return Graph(
        name=name,
        title=title,
        description="Splits the question into parts, starts a run for each, combines the findings and verifies them.",
        version=compute_version("research_team", "agentflow"),
        build=partial(build, config),
        initial_state=build_initial_state(State),
        roles=ROLES,
        optional_roles=(CHECKER,),
        turn_counter="turn",
        fallback_report=build_fallback_report,
        handles_follow_ups=True,
        state_view=StateView.MEMORY,
    )


graph = configure_graph("research_team", TeamConfig())

reviewed = configure_graph("research_team_reviewed", TeamConfig(review=True), "Research team, plan first")
