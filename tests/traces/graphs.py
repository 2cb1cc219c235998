"""A graph with everything that the other cases lack: effects, a failure in the middle, and a person who steers it.

Its question says which: the tools that it uses at each turn, and what takes place at the end of turn 2. `narrows`: it
restricts its own tools. `signals`: a person steers it. `writes`: what it has recorded is written, which otherwise goes
with the next append. `raises`: it fails.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypedDict

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from offing.sdk import (
    DraftSection,
    DraftSentence,
    EngineFailure,
    Graph,
    ReportDraft,
    RunContext,
    SideEffect,
    StepDraft,
    StepKind,
    StopReason,
    ToolArgs,
    ToolCall,
    ToolOutput,
    tool,
)
from tests.workers.graphs import SPEAKER, Ask, untyped

GRAPHS = "tests.traces.graphs:working"

EFFECTS: list[list[str]] = []
"""What the tools really did in this process: name, what with, key."""

SIGNALS: list[Callable[[], Awaitable[None]]] = []
"""What happens when the graph signals; the last one counts."""


class Thing(ToolArgs, frozen=True):
    what: str


def _done(name: str, args: Thing, key: str) -> ToolOutput:
    EFFECTS.append([name, args.what, key])
    return ToolOutput({"did": f"{name} {args.what}"}, args.what)


@tool()
async def look(args: Thing, key: str) -> ToolOutput:
    """Looks at something."""
    return _done("look", args, key)


@tool(side_effect=SideEffect.IDEMPOTENT)
async def put(args: Thing, key: str) -> ToolOutput:
    """Puts something in its place, where it may be already."""
    return _done("put", args, key)


@tool(side_effect=SideEffect.AT_MOST_ONCE)
async def launch(args: Thing, key: str) -> ToolOutput:
    """Launches something, for good."""
    return _done("launch", args, key)


@tool()
async def fail(args: Thing, key: str) -> ToolOutput:
    """Fails."""
    EFFECTS.append(["fail", args.what, key])
    raise ValueError(f"no {args.what}")


class Work(TypedDict):
    turn: int
    stop: str


async def _work(state: Work, runtime: Runtime[Any]) -> dict[str, Any]:
    """One turn, with every kind of call."""
    ctx: RunContext = runtime.context
    turn, messages = state["turn"] + 1, ctx.run.question.split()
    await ctx.begin_turn(turn)
    if reason := ctx.stop_reason():
        return {"turn": turn, "stop": reason}
    reply = await ctx.call_role(SPEAKER, Ask(turn=turn), turn=turn)
    if isinstance(reply, EngineFailure):
        return {"turn": turn, "stop": reply.stop_reason or StopReason.PROVIDER_DOWN}
    for message in await ctx.get_user_messages(0) if turn == 1 else ():
        await ctx.append_steps(StepDraft(StepKind.NOTE, message.title, turn=turn))
    for name in (word for word in messages if word in TOOLS):
        result = await ctx.call_tool(ToolCall(name, {"what": f"{reply.output.word} {turn}"}), turn=turn)
        await ctx.append_steps(StepDraft(StepKind.MEMORY, f"{name}: {result.status}", {"of": result.seq}, turn=turn))
    if turn == 2:
        await _turn_two(ctx, messages)
    return {"turn": turn, "stop": ""}


async def _turn_two(ctx: RunContext, messages: list[str]) -> None:
    if "narrows" in messages:
        text = await ctx.restrict_tools([{"tool": "put", "effect": "forbid", "reason": "enough"}], turn=2)
        await ctx.append_steps(StepDraft(StepKind.NOTE, text or "narrower", turn=2))
    if "signals" in messages:
        await SIGNALS[-1]()
    if "writes" in messages:
        await ctx.last_steps(StepKind.MEMORY, 1)
    if "raises" in messages:
        raise RuntimeError("this graph raises in the middle")


async def _write(state: Work, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    memory = await ctx.last_steps(StepKind.MEMORY, 100)
    sentences = tuple(DraftSentence(text=step.title) for step in memory)
    draft = ReportDraft(title="Work", sections=(DraftSection(heading="Done", sentences=sentences),))
    reason = StopReason(state["stop"])
    await ctx.submit_report(draft, StopReason.ANSWERED if reason is StopReason.TURN_LIMIT else reason)
    return {}


def _next(state: Work) -> str:
    return "write" if state["stop"] else "work"


def _build() -> Any:
    graph = untyped(Work, context_schema=RunContext)
    graph.add_node("work", _work)
    graph.add_node("write", _write)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", _next, ["write", "work"])
    graph.add_edge("write", END)
    return graph


TOOLS = {tool.spec.name: tool for tool in (look, put, launch, fail)}

working = Graph(
    name="working",
    title="Working",
    description="Speaks and uses what its question names, turn by turn.",
    version="working-1",
    build=_build,
    initial_state=lambda _: {"turn": 0, "stop": ""},
    roles=(SPEAKER,),
    turn_counter="turn",
    tools=tuple(TOOLS.values()),
)
