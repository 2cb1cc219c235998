"""A graph that asks a tool of the MCP server that the question begins with, and cites what it answers."""

from typing import Any, TypedDict

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from offing.sdk import (
    DraftCitation,
    DraftSection,
    DraftSentence,
    Graph,
    ReportDraft,
    RunContext,
    StopReason,
    ToolCall,
    ToolStatus,
)
from tests.workers.graphs import untyped

GRAPHS = "tests.workers.mcp_graph:asking"


class State(TypedDict):
    turn: int


async def ask(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    server, question = ctx.run.question.split(": ")
    answer = await ctx.call_tool(ToolCall(f"mcp_{server}_echo", {"text": question}), turn=1)
    if answer.status is not ToolStatus.OK:
        await ctx.submit_report(_report("Nothing was answered.", ()), StopReason.NO_PROGRESS)
        return {"turn": 1}
    if (following := answer.content.get("next")) is not None:
        on = {"name": answer.content["name"], "start": following}
        await ctx.call_tool(ToolCall(f"mcp_{server}_read_on", on), turn=1)
    result = (await ctx.get_evidence(5))[0]
    await ctx.submit_report(_report(result.text, (DraftCitation(evidence=result.id),)), StopReason.ANSWERED)
    return {"turn": 1}


def _report(text: str, citations: tuple[DraftCitation, ...]) -> ReportDraft:
    sentence = DraftSentence(text=text, citations=citations)
    return ReportDraft(title="Found", sections=(DraftSection(heading="Found", sentences=(sentence,)),))


def _build() -> Any:
    graph = untyped(State, context_schema=RunContext)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph


asking = Graph(
    name="asking",
    title="Asking",
    description="Asks a server and cites.",
    version="asking-1",
    build=_build,
    initial_state=lambda _: {"turn": 0},
    roles=(),
    turn_counter="turn",
)
