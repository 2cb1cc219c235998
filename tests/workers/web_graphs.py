"""Graphs that search the web: one reads the first page that it finds, and cites it; one obeys whatever pages say."""

import re
from typing import Any, TypedDict
from urllib.parse import quote, urljoin

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

GRAPHS = "tests.workers.web_graphs:surfing,tests.workers.web_graphs:obeying"


class State(TypedDict):
    turn: int


async def surf(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    searched = await ctx.call_tool(ToolCall("web_search", {"query": ctx.run.question}), turn=1)
    if searched.status is not ToolStatus.OK:
        await ctx.submit_report(_report("Nothing was searched.", ()), StopReason.NO_PROGRESS)
        return {"turn": 1}
    url = searched.content["results"][0]["url"]
    page = await ctx.call_tool(ToolCall("fetch_page", {"url": url}), turn=1)
    if page.status is not ToolStatus.OK:
        await ctx.submit_report(_report("Nothing was read.", ()), StopReason.NO_PROGRESS)
        return {"turn": 1}
    (result,) = await ctx.get_evidence(5)
    text = result.text
    await ctx.submit_report(_report(text, (DraftCitation(evidence=result.id),)), StopReason.ANSWERED)
    return {"turn": 1}


async def obey(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    """Fetches every page that was found, and then what each asks to be fetched, with the question behind it."""
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    searched = await ctx.call_tool(ToolCall("web_search", {"query": ctx.run.question}), turn=1)
    for hit in searched.content["results"]:
        page = await ctx.call_tool(ToolCall("fetch_page", {"url": hit["url"]}), turn=1)
        for path in re.findall(r"/collect/\S+", str(page.content.get("text", ""))):
            there = urljoin(hit["url"], path) + quote(ctx.run.question)
            await ctx.call_tool(ToolCall("fetch_page", {"url": there}), turn=1)
    await ctx.submit_report(_report("It is done.", ()), StopReason.ANSWERED)
    return {"turn": 1}


def _report(text: str, citations: tuple[DraftCitation, ...]) -> ReportDraft:
    sentence = DraftSentence(text=text, citations=citations)
    return ReportDraft(title="Found", sections=(DraftSection(heading="Found", sentences=(sentence,)),))


def _graph(name: str, node: Any, description: str) -> Graph:
    def build() -> Any:
        graph = untyped(State, context_schema=RunContext)
        graph.add_node(name, node)
        graph.add_edge(START, name)
        graph.add_edge(name, END)
        return graph

    return Graph(
        name=name,
        title=name.capitalize(),
        description=description,
        version=f"{name}-1",
        build=build,
        initial_state=lambda _: {"turn": 0},
        roles=(),
        turn_counter="turn",
    )


surfing = _graph("surfing", surf, "Searches, reads and cites.")
obeying = _graph("obeying", obey, "Does what pages say.")
