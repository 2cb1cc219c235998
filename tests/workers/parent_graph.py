"""A graph that has others do its work: its question says which runs it starts, and its report the result."""

import json
from typing import Any, TypedDict

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from offing.core.run import Budget
from offing.sdk import (
    ChildRequest,
    ChildRunsUnavailable,
    DraftCitation,
    DraftSection,
    DraftSentence,
    Graph,
    ReportDraft,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
)
from tests.workers.graphs import SPEAKER, untyped

GRAPHS = "tests.workers.parent_graph:family,tests.workers.parent_graph:conversing"


class Family(TypedDict):
    turn: int


def question_for(*children: dict[str, Any]) -> str:
    """The question that starts these: question, graph and, if limited, turns."""
    return json.dumps({"children": children})


def requests_of(question: str) -> tuple[ChildRequest, ...]:
    return tuple(
        ChildRequest(c["question"], c.get("graph", "counting"), Budget(max_turns=c["turns"]) if "turns" in c else None)
        for c in json.loads(question)["children"]
    )


async def send(state: Family, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    results = await ctx.run_children(requests_of(ctx.run.question), turn=1)
    if isinstance(results, ChildRunsUnavailable):
        await ctx.append_steps(StepDraft(StepKind.MEMORY, "alone", {"said": f"alone: {results.reason}"}, turn=1))
        return {"turn": 1}
    for one in results:
        text = f"{one.question}: {one.status}, {one.stop}, {len(one.findings)} said"
        await ctx.append_steps(StepDraft(StepKind.MEMORY, one.question, {"said": text}, turn=1))
    return {"turn": 1 + sum(one.usage.turns for one in results)}


async def write(state: Family, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    messages = [step.payload["said"] for step in await ctx.last_steps(StepKind.MEMORY, 100)]
    sentences = tuple(DraftSentence(text=text) for text in (*messages, f"turns: {ctx.usage.turns}"))
    draft = ReportDraft(title="Family", sections=(DraftSection(heading="Children", sentences=sentences),))
    await ctx.submit_report(draft, StopReason.ANSWERED)
    return {}


def _build() -> Any:
    graph = untyped(Family, context_schema=RunContext)
    graph.add_node("send", send)
    graph.add_node("write", write)
    graph.add_edge(START, "send")
    graph.add_edge("send", "write")
    graph.add_edge("write", END)
    return graph


family = Graph(
    name="family",
    title="Family",
    description="Has others do its work.",
    version="family-1",
    build=_build,
    initial_state=lambda _: {"turn": 0},
    roles=(SPEAKER,),
    turn_counter="turn",
)


async def look_back(state: Family, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    notes = tuple(DraftSentence(text=f"{note.key}: {note.text}") for note in await ctx.load_notes())
    result = await ctx.search_thread(ctx.run.question, 3)
    words = {passage.id: passage.text for passage in await ctx.get_evidence(100)}
    messages = tuple(
        DraftSentence(
            text=one.text, citations=tuple(DraftCitation(evidence=id, quote=words[id]) for id in one.evidence)
        )
        for one in result
    )
    await ctx.save_note("last", ctx.run.question)
    await ctx.save_note("last", f"{ctx.run.question}!")
    named = (("Notes", notes), ("Said", messages))
    sections = tuple(DraftSection(heading=name, sentences=sentences) for name, sentences in named if sentences)
    await ctx.submit_report(ReportDraft(title="Back", sections=sections), StopReason.ANSWERED)
    return {"turn": 1}


def _looking_back() -> Any:
    graph = untyped(Family, context_schema=RunContext)
    graph.add_node("look_back", look_back)
    graph.add_edge(START, "look_back")
    graph.add_edge("look_back", END)
    return graph


conversing = Graph(
    name="conversing",
    title="Conversing",
    description="Looks back at its thread.",
    version="conversing-1",
    build=_looking_back,
    initial_state=lambda _: {"turn": 0},
    roles=(),
    turn_counter="turn",
)
