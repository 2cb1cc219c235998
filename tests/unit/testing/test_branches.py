"""Branches side by side: their order is nobody's promise, and what they ask is."""

import asyncio
import operator
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START
from langgraph.types import Send
from pydantic import BaseModel

from offing.sdk import (
    EngineFailure,
    Graph,
    Headline,
    Message,
    ReportDraft,
    Role,
    RunContext,
    RunView,
    StopReason,
    ToolArgs,
    ToolCall,
    ToolOutput,
    tool,
)
from offing.testing import Differs, survives
from offing.testing.checking import check
from tests.workers.graphs import untyped

PAGES = {"towers.md": "# Towers\n\nThe first tower was lit in 1698. The third tower was lit in 1759."}


class Asked(BaseModel):
    about: str


class Told(BaseModel):
    word: str


class PauseArgs(ToolArgs, frozen=True):
    pauses: int


@tool()
async def pause(args: PauseArgs) -> ToolOutput:
    """Let the others go first."""
    for _ in range(args.pauses):
        await asyncio.sleep(0)
    return ToolOutput({}, f"{args.pauses}")


class Whole(TypedDict):
    topics: list[str]
    found: Annotated[list[int], operator.add]


class Branch(TypedDict):
    topic: str


def _render(given: Asked) -> tuple[Message, ...]:
    return (Message("user", (given.about,)),)


WRITER = Role("writer", Asked, Told, _render, lambda told: Headline(told.word), extractive=lambda g: Told(word=g.about))


async def said(ctx: RunContext, about: str) -> tuple[int, str]:
    """Seq and word of the writer's answer; of its failure, the question itself."""
    reply: Any = await ctx.call(WRITER, Asked(about=about))
    return (0, about) if isinstance(reply, EngineFailure) else (reply.seq, reply.output.word)


async def plan(state: Any, runtime: Any) -> dict[str, Any]:
    await runtime.context.call(WRITER, Asked(about="a plan"))
    return {"topics": ["first tower", "third tower", "lit"]}


def each(state: Any) -> list[Send]:
    return [Send("work", {"topic": topic}) for topic in state["topics"]]


async def write(state: Any, runtime: Any) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    words = sorted(step.payload["output"]["word"] for step in await ctx.fetch(sorted(state["found"])))
    pieces = [piece.id for piece in await ctx.evidence(10)]
    _, title = await said(ctx, f"{' and '.join(words)} {pieces}")
    await ctx.deliver(ReportDraft(title=title, sections=()), StopReason.ANSWERED)
    return {}


def branching(work: Callable[..., Any]) -> Graph:
    """A graph that works on each topic in a branch of its own, and writes when all are done."""

    def build() -> Any:
        graph = untyped(Whole, context_schema=RunContext)
        graph.add_node("plan", plan)
        graph.add_node("work", work, input_schema=Branch)
        graph.add_node("write", write)
        graph.add_edge(START, "plan")
        graph.add_conditional_edges("plan", each, ["work"])
        graph.add_edge("work", "write")
        graph.add_edge("write", END)
        return graph

    start: dict[str, Any] = {"topics": [], "found": []}
    return Graph("branching", "Branching", "", "any", build, lambda _: start, (WRITER,), tools=(pause,))


async def search(state: Any, runtime: Any) -> dict[str, Any]:
    """Two calls in a branch, without a pause between them."""
    ctx: RunContext = runtime.context
    seq, _ = await said(ctx, state["topic"])
    await ctx.use(ToolCall("search_library", {"query": state["topic"], "limit": 2}))
    return {"found": [seq]}


class Private(TypedDict):
    kept: str


async def keep(state: Any) -> dict[str, Any]:
    """Something for a node after it alone, which LangGraph keeps as it keeps state."""
    return {"kept": "till the next run of the thread"}


async def read_kept(state: Private) -> dict[str, Any]:
    return {}


async def search_by_turns(state: Any, runtime: Any) -> dict[str, Any]:
    """The branches pause for different times, so that they come in another order when one reads its pause back."""
    ctx: RunContext = runtime.context
    await ctx.use(ToolCall("pause", {"pauses": 9 - len(state["topic"]) % 8}))
    await ctx.use(ToolCall("search_library", {"query": state["topic"], "limit": 2}))
    await asyncio.sleep(0)
    seq, _ = await said(ctx, state["topic"])
    return {"found": [seq]}


async def gather(state: Any, runtime: Any) -> dict[str, Any]:
    """Several calls of one branch at once: a loss may cost all that were in the air."""
    ctx: RunContext = runtime.context
    await asyncio.gather(*[ctx.use(ToolCall("pause", {"pauses": 4 - n})) for n in range(3)])
    told = await asyncio.gather(*[said(ctx, f"{state['topic']} {n}") for n in range(2)])
    return {"found": [seq for seq, _ in told]}


@pytest.mark.parametrize("work", [search, search_by_turns, gather])
async def test_a_graph_whose_branches_make_calls_survives_and_has_no_fault(work: Any) -> None:
    whole = await survives(branching(work), "When were the towers lit?", documents=PAGES)
    assert whole.moments > 15
    assert await check(branching(work)) == ()


async def test_a_branch_that_asks_something_else_after_a_loss_is_found() -> None:
    drawn = iter(range(10**6))

    async def restless(state: Any, runtime: Any) -> dict[str, Any]:
        await search_by_turns(state, runtime)
        seq, _ = await said(runtime.context, f"{next(drawn)}")
        return {"found": [seq]}

    with pytest.raises(Differs, match="differs"):
        await survives(branching(restless), "When were the towers lit?", documents=PAGES)


async def test_what_is_asked_after_the_branches_is_compared_as_well() -> None:
    draw = random.Random(7)

    async def chancy(state: Any, runtime: Any) -> dict[str, Any]:
        done = await search_by_turns(state, runtime)
        if draw.random() < 0.1:
            await runtime.context.use(ToolCall("pause", {"pauses": 0}))
        return done

    with pytest.raises(Differs):
        await survives(branching(chancy), "When were the towers lit?", documents=PAGES)


async def test_nothing_is_done_beside_a_branch_whose_worker_was_lost() -> None:
    """Each loss costs at most the call that each branch was making: others were not begun, or are on record."""
    from offing.testing import rehearse

    graph = branching(search)
    whole = await rehearse(graph, "When were the towers lit?", documents=PAGES)
    for moment in range(whole.moments):
        lost = await rehearse(graph, "When were the towers lit?", documents=PAGES, lose_at=moment)
        assert 0 <= len(lost.executed) - len(whole.executed) <= 3


async def test_a_key_that_nodes_hand_to_one_another_beside_the_state_is_one_that_a_run_must_begin_with() -> None:
    graph = branching(search)

    def build() -> Any:
        built = graph.build()
        built.add_node("keep", keep)
        built.add_node("read_kept", read_kept)
        built.add_edge("write", "keep")
        built.add_edge("keep", "read_kept")
        return built

    (found,) = await check(replace(graph, build=build))
    assert (found.rule, found.place) == ("start", "state key 'kept'")


async def test_a_key_that_start_sets_and_no_state_has_is_found() -> None:
    def start(run: RunView) -> dict[str, Any]:
        return {"topics": [], "found": [], "topcis": []}

    (found,) = await check(replace(branching(search), start=start))
    assert (found.rule, found.place, found.remedy) == ("start", "state key 'topcis'", "Correct its name.")
