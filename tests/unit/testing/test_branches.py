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
    RunInfo,
    StopReason,
    ToolArgs,
    ToolCall,
    ToolOutput,
    tool,
)
from offing.testing import RecoveryMismatchError, assert_survives_worker_loss
from offing.testing.graph_checks import find_graph_issues
from tests.workers.graphs import untyped

PAGES = {"towers.md": "# Towers\n\nThe first tower was lit in 1698. The third tower was lit in 1759."}


class WriterInput(BaseModel):
    about: str


class WriterOutput(BaseModel):
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
    seqs: Annotated[list[int], operator.add]


class Branch(TypedDict):
    topic: str


def _render(inputs: WriterInput) -> tuple[Message, ...]:
    return (Message("user", (inputs.about,)),)


WRITER = Role(
    "writer",
    WriterInput,
    WriterOutput,
    _render,
    lambda output: Headline(output.word),
    extractive=lambda g: WriterOutput(word=g.about),
)


async def call_writer(ctx: RunContext, about: str) -> tuple[int, str]:
    """Seq and word of the writer's answer; of its failure, the question itself."""
    reply: Any = await ctx.call_role(WRITER, WriterInput(about=about))
    return (0, about) if isinstance(reply, EngineFailure) else (reply.seq, reply.output.word)


async def plan(state: Any, runtime: Any) -> dict[str, Any]:
    await runtime.context.call_role(WRITER, WriterInput(about="a plan"))
    return {"topics": ["first tower", "third tower", "lit"]}


def each(state: Any) -> list[Send]:
    return [Send("work", {"topic": topic}) for topic in state["topics"]]


async def write(state: Any, runtime: Any) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    words = sorted(step.payload["output"]["word"] for step in await ctx.get_steps(sorted(state["seqs"])))
    pieces = [piece.id for piece in await ctx.get_evidence(10)]
    _, title = await call_writer(ctx, f"{' and '.join(words)} {pieces}")
    await ctx.submit_report(ReportDraft(title=title, sections=()), StopReason.ANSWERED)
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

    start: dict[str, Any] = {"topics": [], "seqs": []}
    return Graph("branching", "Branching", "", "any", build, lambda _: start, (WRITER,), tools=(pause,))


async def search(state: Any, runtime: Any) -> dict[str, Any]:
    """Two calls in a branch, without a pause between them."""
    ctx: RunContext = runtime.context
    seq, _ = await call_writer(ctx, state["topic"])
    await ctx.call_tool(ToolCall("search_library", {"query": state["topic"], "limit": 2}))
    return {"seqs": [seq]}


class Private(TypedDict):
    note: str


async def keep(state: Any) -> dict[str, Any]:
    """Something for a node after it alone, which LangGraph keeps as it keeps state."""
    return {"note": "till the next run of the thread"}


async def read_kept(state: Private) -> dict[str, Any]:
    return {}


async def search_by_turns(state: Any, runtime: Any) -> dict[str, Any]:
    """The branches pause for different times, so that they come in another order when one reads its pause back."""
    ctx: RunContext = runtime.context
    await ctx.call_tool(ToolCall("pause", {"pauses": 9 - len(state["topic"]) % 8}))
    await ctx.call_tool(ToolCall("search_library", {"query": state["topic"], "limit": 2}))
    await asyncio.sleep(0)
    seq, _ = await call_writer(ctx, state["topic"])
    return {"seqs": [seq]}


async def gather(state: Any, runtime: Any) -> dict[str, Any]:
    """Several calls of one branch at once: a loss may cost all that were in the air."""
    ctx: RunContext = runtime.context
    await asyncio.gather(*[ctx.call_tool(ToolCall("pause", {"pauses": 4 - n})) for n in range(3)])
    messages = await asyncio.gather(*[call_writer(ctx, f"{state['topic']} {n}") for n in range(2)])
    return {"seqs": [seq for seq, _ in messages]}


@pytest.mark.parametrize("work", [search, search_by_turns, gather])
async def test_a_graph_whose_branches_make_calls_survives_and_has_no_fault(work: Any) -> None:
    whole = await assert_survives_worker_loss(branching(work), "When were the towers lit?", documents=PAGES)
    assert whole.loss_points > 15
    assert await find_graph_issues(branching(work)) == ()


async def test_a_branch_that_asks_something_else_after_a_crash_is_found() -> None:
    drawn = iter(range(10**6))

    async def restless(state: Any, runtime: Any) -> dict[str, Any]:
        await search_by_turns(state, runtime)
        seq, _ = await call_writer(runtime.context, f"{next(drawn)}")
        return {"seqs": [seq]}

    with pytest.raises(RecoveryMismatchError, match="differs"):
        await assert_survives_worker_loss(branching(restless), "When were the towers lit?", documents=PAGES)


async def test_what_is_asked_after_the_branches_is_compared_as_well() -> None:
    draw = random.Random(7)

    async def chancy(state: Any, runtime: Any) -> dict[str, Any]:
        done = await search_by_turns(state, runtime)
        if draw.random() < 0.1:
            await runtime.context.call_tool(ToolCall("pause", {"pauses": 0}))
        return done

    with pytest.raises(RecoveryMismatchError):
        await assert_survives_worker_loss(branching(chancy), "When were the towers lit?", documents=PAGES)


async def test_nothing_is_done_beside_a_branch_whose_worker_crashed() -> None:
    """Each loss costs at most the call that each branch was making: others were not begun, or are on record."""
    from offing.testing import simulate_run

    graph = branching(search)
    whole = await simulate_run(graph, "When were the towers lit?", documents=PAGES)
    for moment in range(whole.loss_points):
        crashed = await simulate_run(graph, "When were the towers lit?", documents=PAGES, crash_at=moment)
        assert 0 <= len(crashed.executed_calls) - len(whole.executed_calls) <= 3


async def test_a_key_that_nodes_hand_to_one_another_beside_the_state_is_one_that_a_run_must_begin_with() -> None:
    graph = branching(search)

    def build() -> Any:
        built = graph.build()
        built.add_node("keep", keep)
        built.add_node("read_kept", read_kept)
        built.add_edge("write", "keep")
        built.add_edge("keep", "read_kept")
        return built

    (result,) = await find_graph_issues(replace(graph, build=build))
    assert (result.rule, result.location) == ("start", "state key 'note'")


async def test_a_key_that_start_sets_and_no_state_has_is_found() -> None:
    def start(run: RunInfo) -> dict[str, Any]:
        return {"topics": [], "seqs": [], "topcis": []}

    (result,) = await find_graph_issues(replace(branching(search), initial_state=start))
    assert (result.rule, result.location, result.remedy) == ("start", "state key 'topcis'", "Correct its name.")
