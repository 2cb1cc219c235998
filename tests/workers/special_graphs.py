"""Graphs for the unusual: one that never stops by itself, one that kills its worker, one that looks back, one with an
effect in the world."""

import asyncio
import operator
import os
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from offing.core.errors import Unavailable
from offing.sdk import (
    DraftSection,
    DraftSentence,
    EngineFailure,
    Graph,
    ReportDraft,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    ToolArgs,
    ToolCall,
    ToolOutput,
    tool,
)
from tests.workers.graphs import SPEAKER, Ask, act, speak, untyped, write

GRAPHS = ",".join(
    f"tests.workers.special_graphs:{name}"
    for name in ("endless", "poison", "recalling", "launching", "forked", "straying", "overtaken")
)


class Count(TypedDict):
    turn: int
    last: int
    stop: str


async def _act_on(state: Count, runtime: Runtime[Any]) -> dict[str, Any]:
    await act(state, runtime)  # pyright: ignore[reportArgumentType]
    return {"stop": ""}


def _go_on(following: str) -> Any:
    def next_node(state: Count) -> str:
        return "write" if state["stop"] else following

    return next_node


def _loop() -> Any:
    graph = untyped(Count, context_schema=RunContext)
    graph.add_node("speak", speak)
    graph.add_node("act", _act_on)
    graph.add_node("write", write)
    graph.add_edge(START, "speak")
    graph.add_conditional_edges("speak", _go_on("act"), ["write", "act"])
    graph.add_edge("act", "speak")
    graph.add_edge("write", END)
    return graph


endless = Graph(
    name="endless",
    title="Endless",
    description="Counts until something stops it.",
    version="endless-1",
    build=_loop,
    initial_state=lambda _: {"turn": 0, "last": 0, "stop": ""},
    roles=(SPEAKER,),
    turn_counter="turn",
)


class Nothing(TypedDict):
    done: bool


def _single(node: Any) -> Any:
    def build() -> Any:
        graph = untyped(Nothing, context_schema=RunContext)
        graph.add_node("only", node)
        graph.add_edge(START, "only")
        graph.add_edge("only", END)
        return graph

    return build


def _of_one_node(name: str, node: Any) -> Graph:
    return Graph(
        name=name,
        title=name.capitalize(),
        description=f"One node: {name}.",
        version=f"{name}-1",
        build=_single(node),
        initial_state=lambda _: {"done": False},
        roles=(),
    )


async def _die(_: Nothing) -> dict[str, Any]:
    await asyncio.sleep(0.5)  # so that others on this worker get on meanwhile
    os._exit(9)


async def _recall(_: Nothing, runtime: Runtime[Any]) -> dict[str, Any]:
    """Report what the thread holds, and what this run's memory holds at its beginning."""
    ctx: RunContext = runtime.context
    memory = await ctx.last_steps(StepKind.MEMORY, 100)
    earlier = "; ".join(f"{question} -> {answer}" for question, answer in ctx.run.prior_exchanges)
    answer = f"memories: {len(memory)}, earlier: {earlier or 'nothing'}"
    await ctx.submit_report(ReportDraft(title=ctx.run.question, answer=answer, sections=()), StopReason.ANSWERED)
    return {"done": True}


async def _launch(_: Nothing, runtime: Runtime[Any]) -> dict[str, Any]:
    """Use the tool whose effect must not happen twice, and report the result."""
    ctx: RunContext = runtime.context
    result = await ctx.call_tool(ToolCall("launch", {"what": "rocket"}), turn=1)
    section = DraftSection(heading="Launch", sentences=(DraftSentence(text=result.status),))
    await ctx.submit_report(ReportDraft(title=ctx.run.question, sections=(section,)), StopReason.ANSWERED)
    return {"done": True}


poison = _of_one_node("poison", _die)

recalling = _of_one_node("recalling", _recall)

launching = _of_one_node("launching", _launch)


class Forked(TypedDict):
    turn: int
    stop: str
    last: Annotated[list[int], operator.add]


async def _begin(state: Forked, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    return {"turn": turn}


def _branch(name: str) -> Any:
    async def node(state: Forked, runtime: Runtime[Any]) -> dict[str, Any]:
        """Every kind of call, beside the same in the other branch."""
        ctx: RunContext = runtime.context
        turn = state["turn"]
        reply = await ctx.call_role(SPEAKER, Ask(turn=turn), turn=turn)
        assert not isinstance(reply, EngineFailure)
        result = await ctx.call_tool(ToolCall("calculate", {"expression": f"{turn} * 2"}), turn=turn)
        word = reply.output.word
        payload = {"word": word, "of": result.seq, "branch": name}
        await ctx.append_steps(StepDraft(StepKind.MEMORY, word, payload, turn=turn))
        return {"last": [reply.seq]}

    return node


async def _join(state: Forked, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    return {"stop": StopReason.ANSWERED if state["turn"] >= ctx.run.budget.max_turns else ""}


def _fork() -> Any:
    graph = untyped(Forked, context_schema=RunContext)
    graph.add_node("begin", _begin)
    graph.add_node("left", _branch("left"))
    graph.add_node("right", _branch("right"))
    graph.add_node("join", _join)
    graph.add_node("write", write)
    graph.add_edge(START, "begin")
    for name in ("left", "right"):
        graph.add_edge("begin", name)
    graph.add_edge(["left", "right"], "join")
    graph.add_conditional_edges("join", _go_on("begin"), ["begin", "write"])
    graph.add_edge("write", END)
    return graph


forked = Graph(
    name="forked",
    title="Forked",
    description="Two branches side by side, each with every kind of call, turn by turn.",
    version="forked-1",
    build=_fork,
    initial_state=lambda _: {"turn": 0, "stop": "", "last": []},
    roles=(SPEAKER,),
    turn_counter="turn",
)


class Tally(ToolArgs, frozen=True):
    n: int


TALLIED: list[int] = []
"""What the tool was called with, in this process."""


@tool()
async def tally(args: Tally) -> ToolOutput:
    """Counts."""
    TALLIED.append(args.n)
    return ToolOutput({"n": args.n}, str(args.n))


STRAYS: list[tuple[asyncio.Event, asyncio.Task[Any]]] = []
"""Tasks that outlived the epoch whose node started them, and what lets each continue."""

STRAYED: list[Any] = []
"""What came of them."""


async def _stray(ctx: RunContext, go_on: asyncio.Event) -> Any:
    await go_on.wait()
    return await ctx.call_tool(ToolCall("tally", {"n": 7}))


async def _lose(state: Count, runtime: Runtime[Any]) -> dict[str, Any]:
    """Leaves a task behind in the first epoch, and lets it call in the second."""
    ctx: RunContext = runtime.context
    if not STRAYS:
        go_on = asyncio.Event()
        STRAYS.append((go_on, asyncio.create_task(_stray(ctx, go_on))))
        raise Unavailable("on purpose")
    if STRAYS and not STRAYED:
        go_on, stray = STRAYS[0]
        go_on.set()
        STRAYED.extend(await asyncio.gather(stray, return_exceptions=True))
    await ctx.begin_turn(1)
    await ctx.call_tool(ToolCall("tally", {"n": 1}), turn=1)
    return {"turn": 1, "stop": StopReason.ANSWERED}


def _astray() -> Any:
    graph = untyped(Count, context_schema=RunContext)
    graph.add_node("lose", _lose)
    graph.add_node("write", write)
    graph.add_edge(START, "lose")
    graph.add_edge("lose", "write")
    graph.add_edge("write", END)
    return graph


straying = Graph(
    name="straying",
    title="Straying",
    description="A task that a node started outlives its epoch.",
    version="straying-1",
    build=_astray,
    initial_state=lambda _: {"turn": 0, "last": 0, "stop": ""},
    roles=(SPEAKER,),
    turn_counter="turn",
    tools=(tally,),
)


DELIVERING: list[asyncio.Event] = []
"""The last one is set when the report is in its transaction, which a test holds."""


async def _deliver(_: Nothing, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    section = DraftSection(heading="Done", sentences=(DraftSentence(text="Delivered."),))
    await ctx.submit_report(ReportDraft(title=ctx.run.question, sections=(section,)), StopReason.ANSWERED)
    return {"done": True}


async def _fail(_: Nothing) -> dict[str, Any]:
    await DELIVERING[-1].wait()
    raise ZeroDivisionError


def _overtake() -> Any:
    graph = untyped(Nothing, context_schema=RunContext)
    for name, node in (("deliver", _deliver), ("fail", _fail)):
        graph.add_node(name, node)
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    return graph


overtaken = Graph(
    name="overtaken",
    title="Overtaken",
    description="A branch raises while the report of the other is being committed.",
    version="overtaken-1",
    build=_overtake,
    initial_state=lambda _: {"done": False},
    roles=(),
)
