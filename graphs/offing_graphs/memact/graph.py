"""The graph: agent, then tool or memory, in turns until an answer. `supo` summarizes instead."""

from functools import partial
from typing import Any

from offing.sdk import Graph, StateView
from offing_graphs.memact.context import EDITING_CONFIG, SUMMARIZING_CONFIG, ContextConfig
from offing_graphs.memact.nodes import AgentNodes
from offing_graphs.memact.roles import AGENT, ROLES
from offing_graphs.memact.state import State
from offing_graphs.shared.claim_check import CHECKER
from offing_graphs.shared.follow_up import add_follow_up
from offing_graphs.shared.graph import compute_version, create_state_graph
from offing_graphs.shared.report import build_fallback_report
from offing_graphs.shared.state import build_initial_state


def build(config: ContextConfig = EDITING_CONFIG) -> Any:
    """Return the uncompiled LangGraph graph. Its structure is the same for every configuration."""
    from langgraph.graph import END

    graph, nodes = create_state_graph(State), AgentNodes(config)
    graph.add_node("agent", nodes.agent)
    graph.add_node("tool", nodes.tool)
    graph.add_node("memory", nodes.memory)
    graph.add_node("summarize", nodes.summarize)
    graph.add_node("finish", nodes.finish)
    add_follow_up(graph, "agent", AGENT)
    graph.add_conditional_edges("agent", _route_next, ["tool", "memory", "finish"])
    graph.add_conditional_edges("tool", _route_next, ["agent", "summarize", "finish"])
    graph.add_conditional_edges("memory", _route_next, ["agent", "summarize", "finish"])
    graph.add_conditional_edges("summarize", _route_next, ["agent", "finish"])
    graph.add_edge("finish", END)
    return graph


async def _route_next(state: State) -> str:
    return "finish" if state["stop"] else state["next"] or "agent"


def configure_graph(name: str, title: str, description: str, config: ContextConfig) -> Graph:
    """Return the graph with a configuration, under its own name."""
    return Graph(
        name=name,
        title=title,
        description=description,
        version=compute_version("memact"),
        build=partial(build, config),
        initial_state=build_initial_state(State),
        roles=ROLES,
        optional_roles=(CHECKER,),
        turn_counter="turn",
        fallback_report=build_fallback_report,
        handles_follow_ups=True,
        state_view=StateView.CONTEXT,
    )


graph = configure_graph(
    "memact",
    "Memory as action",
    "One agent that works with tools and edits its own context: it removes records and keeps notes about them.",
    EDITING_CONFIG,
)
supo = configure_graph(
    "supo",
    "Summarize when full",
    "One agent that works with tools and, when its context is full, continues from a summary that it writes.",
    SUMMARIZING_CONFIG,
)
