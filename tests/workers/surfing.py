"""A graph that searches the web, reads the first page that it finds, and cites it."""

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

GRAPHS = "tests.workers.surfing:surfing"


class State(TypedDict):
    turn: int


async def surf(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    searched = await ctx.use(ToolCall("web_search", {"query": ctx.run.question}), turn=1)
    if searched.status is not ToolStatus.OK:
        await ctx.deliver(_report("Nothing was searched.", ()), StopReason.NO_PROGRESS)
        return {"turn": 1}
    url = searched.content["results"][0]["url"]
    page = await ctx.use(ToolCall("fetch_page", {"url": url}), turn=1)
    if page.status is not ToolStatus.OK:
        await ctx.deliver(_report("Nothing was read.", ()), StopReason.NO_PROGRESS)
        return {"turn": 1}
    (found,) = await ctx.evidence(5)
    text = found.text
    await ctx.deliver(_report(text, (DraftCitation(evidence=found.id),)), StopReason.ANSWERED)
    return {"turn": 1}


def _report(text: str, citations: tuple[DraftCitation, ...]) -> ReportDraft:
    sentence = DraftSentence(text=text, citations=citations)
    return ReportDraft(title="Found", sections=(DraftSection(heading="Found", sentences=(sentence,)),))


def _build() -> Any:
    graph = untyped(State, context_schema=RunContext)
    graph.add_node("surf", surf)
    graph.add_edge(START, "surf")
    graph.add_edge("surf", END)
    return graph


surfing = Graph(
    name="surfing",
    title="Surfing",
    description="Searches, reads and cites.",
    version="surfing-1",
    build=_build,
    start=lambda _: {"turn": 0},
    roles=(),
    turn_key="turn",
)
