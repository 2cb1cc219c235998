"""Graphs that wait for a person: by LangGraph's own interrupt, and through the run's context.

Each ends with a report whose sentences are what it heard, so that a test sees what the answers became.
"""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from offing.sdk import (
    DraftSection,
    DraftSentence,
    Graph,
    PlanProposal,
    ReportDraft,
    ReviewDecision,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    ToolCall,
)
from tests.workers.graphs import untyped

NAMES = ("plain_ask", "plain_branches", "asking", "branching", "defaulting", "deciding", "using")

GRAPHS = ",".join(f"tests.workers.input_graphs:{name}" for name in NAMES)


class Heard(TypedDict):
    heard: Annotated[list[str], operator.add]


async def _report(state: Heard, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    sentences = tuple(DraftSentence(text=text) for text in sorted(state["heard"]))
    draft = ReportDraft(title="Heard", sections=(DraftSection(heading="Heard", sentences=sentences),))
    await ctx.submit_report(draft, StopReason.ANSWERED)
    return {}


def _graph(name: str, *nodes: Any) -> Graph:
    """All nodes side by side, then the report."""

    def build() -> Any:
        graph = untyped(Heard, context_schema=RunContext)
        graph.add_node("report", _report)
        for node in nodes:
            graph.add_node(node.__name__, node)
            graph.add_edge(START, node.__name__)
        graph.add_edge([node.__name__ for node in nodes], "report")
        graph.add_edge("report", END)
        return graph

    return Graph(name, name, "Waits for a person.", f"{name}-1", build, lambda _: {"heard": []}, ())


async def one(_: Heard) -> dict[str, Any]:
    return {"heard": [f"one {interrupt({'question': 'Which one?', 'of': [1, 2]})!r}"]}


async def two(_: Heard) -> dict[str, Any]:
    first = interrupt("First?")
    return {"heard": [f"two {first} {interrupt('Second?')}"]}


async def quiet(_: Heard) -> dict[str, Any]:
    return {"heard": ["quiet"]}


async def asks(_: Heard, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    review = await ctx.review(PlanProposal(("look", "write"), goal="Find it"))
    word = await ctx.ask("Which year?", choices=("1990", "1991"))
    sure = await ctx.approve("Delete the draft?", "It is 3 pages long.")
    return {"heard": [f"{review.decision} {'+'.join(review.plan.steps)} {word} {sure}"]}


async def left(_: Heard, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.append_steps(StepDraft(StepKind.NOTE, "left began"))
    return {"heard": [f"left {await ctx.ask('Left?')}"]}


async def right(_: Heard, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    result = await ctx.call_tool(ToolCall("calculate", {"expression": "6 * 7"}))
    return {"heard": [f"right {result.content['text']} {await ctx.ask('Right?')}"]}


async def briefly_asking(_: Heard, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    return {"heard": [f"briefly_asking {await ctx.ask('Quick?', default='nobody', timeout_seconds=0.2)}"]}


async def patient(_: Heard, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    review = await ctx.review(PlanProposal(("a",)), default=ReviewDecision.APPROVED)
    return {"heard": [f"patient {review.decision}"]}


async def uses(_: Heard, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    first = await ctx.call_tool(ToolCall("calculate", {"expression": "1 + 1"}))
    second = await ctx.call_tool(ToolCall("calculate", {"expression": "2 + 2"}))
    return {"heard": [f"{r.status} {r.content.get('text', r.message)}" for r in (first, second)]}


plain_ask = _graph("plain_ask", one)
plain_branches = _graph("plain_branches", one, two, quiet)
asking = _graph("asking", asks)
branching = _graph("branching", left, right, quiet)
defaulting = _graph("defaulting", briefly_asking)
deciding = _graph("deciding", patient)
using = _graph("using", uses)
