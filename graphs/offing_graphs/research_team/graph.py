"""The graph's shape: plan → a loop for each part → verify → write."""

from functools import partial
from pathlib import Path
from typing import Any

from offing.sdk import Evidence, Graph, ReportDraft, RunContext, RunView, content_hash
from offing_graphs.agentflow import extractive
from offing_graphs.parts import ROOMS
from offing_graphs.parts.ending import unless_stopped
from offing_graphs.parts.findings import pieces
from offing_graphs.research_team.config import Config
from offing_graphs.research_team.nodes import Nodes
from offing_graphs.research_team.roles import ROLES
from offing_graphs.research_team.state import State, start

HERE = Path(__file__).parent


def build(config: Config) -> Any:
    """The uncompiled LangGraph graph."""
    from langgraph.graph import END, START, StateGraph

    untyped: Any = StateGraph  # its stubs bound the context to dataclasses, and ours is a protocol
    graph, nodes = untyped(State, context_schema=RunContext), Nodes(config)
    for node in (nodes.plan, nodes.review, nodes.delegate, nodes.planner, nodes.executor, nodes.assess, nodes.verify):
        graph.add_node(node.__name__, node)
    graph.add_node("write", nodes.write)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", unless_stopped("review", "write"), ["review", "write"])
    graph.add_conditional_edges("review", _after_a_review, ["plan", "delegate", "write"])
    graph.add_conditional_edges("delegate", _after_the_team, ["planner", "verify", "write"])
    graph.add_conditional_edges("planner", unless_stopped("executor", "write"), ["executor", "write"])
    graph.add_conditional_edges("executor", _after_a_call, ["assess", "verify", "write"])
    graph.add_conditional_edges("assess", _after_a_part, ["planner", "verify", "write"])
    graph.add_conditional_edges("verify", unless_stopped("planner", "write"), ["planner", "write"])
    graph.add_edge("write", END)
    return graph


async def _after_a_review(state: State) -> str:
    return "write" if state["stop"] else "plan" if state["replan"] else "delegate"


async def _after_the_team(state: State) -> str:
    """What the team brought is verified; without one the first part is begun."""
    return "write" if state["stop"] else "verify" if state["team"] else "planner"


async def _after_a_call(state: State) -> str:
    return "write" if state["stop"] else "assess" if state["part"] < state["parts"] else "verify"


async def _after_a_part(state: State) -> str:
    return "write" if state["stop"] else "planner" if state["part"] < state["parts"] else "verify"


def salvage(run: RunView, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """A report without a model, for a run that ended before it could write."""
    return extractive.salvage(run, pieces(evidence))


def configured(name: str, config: Config, title: str = "Research team") -> Graph:
    """The flow with its own options, under a name of its own."""
    return Graph(
        name=name,
        title=title,
        description="Splits the question into parts, has each researched, brings the findings together and verifies.",
        version=content_hash(HERE, HERE.parent / "agentflow", *ROOMS),
        build=partial(build, config),
        start=start,
        roles=ROLES,
        turn_key="turn",
        salvage=salvage,
    )


graph = configured("research_team", Config())

reviewed = configured("research_team_reviewed", Config(review=True), "Research team, plan first")
