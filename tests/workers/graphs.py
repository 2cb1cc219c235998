"""Graphs for tests of the run protocol: as small as a graph can be, with every kind of call in them."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel

from offing.sdk import (
    DraftSection,
    DraftSentence,
    EngineFailure,
    Graph,
    Headline,
    Message,
    ReportDraft,
    Role,
    RunContext,
    RunInfo,
    StepDraft,
    StepKind,
    StopReason,
    ToolCall,
)

untyped: Any = StateGraph
"""Its stubs bound the context to dataclasses, and ours is a protocol."""


class Ask(BaseModel):
    turn: int


class Say(BaseModel):
    word: str


def _render(inputs: Ask) -> tuple[Message, ...]:
    return (Message("user", (f"turn {inputs.turn}",)),)


def _plain(inputs: Ask) -> Say:
    return Say(word=f"word {inputs.turn}")


SPEAKER: Role[Ask, Say] = Role("speaker", Ask, Say, _render, lambda s: Headline(s.word), StepKind.PLAN, "plan", _plain)


class Count(TypedDict):
    turn: int
    last: int
    stop: str


async def speak(state: Count, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    if reason := ctx.stop_reason():
        return {"stop": reason}
    reply = await ctx.call_role(SPEAKER, Ask(turn=turn), turn=turn)
    if isinstance(reply, EngineFailure):
        return {"stop": reply.stop_reason or StopReason.PROVIDER_DOWN}
    return {"turn": turn, "last": reply.seq}


async def act(state: Count, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    turn = state["turn"]
    (text,) = await ctx.get_steps([state["last"]])
    result = await ctx.call_tool(ToolCall("calculate", {"expression": f"{turn} * 2"}), turn=turn)
    word = text.payload["output"]["word"]
    await ctx.append_steps(
        StepDraft(StepKind.MEMORY, f"{word}: {result.content}", {"word": word, "of": result.seq}, turn=turn)
    )
    return {"stop": StopReason.ANSWERED if turn >= ctx.run.budget.max_turns else ""}


async def write(state: Count, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    memory = await ctx.last_steps(StepKind.MEMORY, 5000)
    sentences = tuple(DraftSentence(text=step.payload["word"]) for step in memory)
    draft = ReportDraft(title=ctx.run.question, sections=(DraftSection(heading="Words", sentences=sentences),))
    await ctx.submit_report(draft, StopReason(state["stop"]))
    return {}


def _unless_stopped(following: str) -> Any:
    def next_node(state: Count) -> str:
        return "write" if state["stop"] else following

    return next_node


def _looped() -> Any:
    graph = untyped(Count, context_schema=RunContext)
    graph.add_node("speak", speak)
    graph.add_node("act", act)
    graph.add_node("write", write)
    graph.add_edge(START, "speak")
    graph.add_conditional_edges("speak", _unless_stopped("act"), ["write", "act"])
    graph.add_conditional_edges("act", _unless_stopped("speak"), ["write", "speak"])
    graph.add_edge("write", END)
    return graph


def _zero(_: RunInfo) -> dict[str, Any]:
    return {"turn": 0, "last": 0, "stop": ""}


counting = Graph(
    name="counting",
    title="Counting",
    description="Speaks, calculates and remembers, once per turn.",
    version="counting-1",
    build=_looped,
    initial_state=_zero,
    roles=(SPEAKER,),
    turn_counter="turn",
)


class Seen(TypedDict):
    seen: Annotated[list[str], operator.add]


def _step(name: str) -> Any:
    async def node(_: Seen) -> Seen:
        return {"seen": [name]}

    return node


def _bare() -> Any:
    graph = untyped(Seen, context_schema=RunContext)
    for name in ("a", "b", "c"):
        graph.add_node(name, _step(name))
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "c")
    graph.add_edge("c", END)
    return graph


noop = Graph(
    name="noop",
    title="Nothing",
    description="Three nodes that do nothing.",
    version="noop-1",
    build=_bare,
    initial_state=lambda _: {"seen": []},
    roles=(),
)


async def _raise(_: Seen) -> Seen:
    raise RuntimeError("this graph is broken")


def _broken() -> Any:
    graph = untyped(Seen, context_schema=RunContext)
    graph.add_node("a", _raise)
    graph.add_edge(START, "a")
    graph.add_edge("a", END)
    return graph


broken = Graph(
    name="broken",
    title="Broken",
    description="Raises.",
    version="broken-1",
    build=_broken,
    initial_state=lambda _: {"seen": []},
    roles=(),
)
