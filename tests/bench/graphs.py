"""The graphs that are measured: one that does nothing, one turn loop with a call each, one that waits.

`offing_*` are the platform's form; the bare form of the loop does the same work without the platform.
"""

import asyncio
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel

from offing.sdk import (
    DraftSection,
    DraftSentence,
    Graph,
    Headline,
    Message,
    ReportDraft,
    Role,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    ToolCall,
)

OBSERVATION = "x" * 2000
"""Code points that each turn remembers, incompressible enough after the turn's number."""


class Given(BaseModel):
    turn: int


class Said(BaseModel):
    word: str
    text: str = ""


def _answer(given: Given) -> Said:
    return Said(word=f"word {given.turn}", text=noise(given.turn))


def noise(turn: int) -> str:
    """Two kilobytes of words that differ from turn to turn."""
    return " ".join(f"{(turn * 7919 + n * 104729) % 999983:06d}" for n in range(280))


SPEAKER: Role[Given, Said] = Role(
    "speaker",
    Given,
    Said,
    lambda given: (Message("user", (str(given.turn),)),),
    lambda said: Headline(said.word),
    StepKind.PLAN,
    "plan",
    _answer,
)


class Seen(TypedDict):
    seen: int


async def _nothing(state: Seen) -> Seen:
    return {"seen": state["seen"] + 1}


def noop_graph() -> StateGraph[Any, Any, Any, Any]:
    """Three nodes that count."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Seen, context_schema=RunContext)
    for name in "abc":
        graph.add_node(name, _nothing)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "c")
    graph.add_edge("c", END)
    return graph


def chain_graph() -> StateGraph[Any, Any, Any, Any]:
    """One node that runs 500 times: nothing but durable supersteps."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Seen, context_schema=RunContext)
    graph.add_node("a", _nothing)
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "a" if s["seen"] < 500 else END, ["a", END])
    return graph


class Turn(TypedDict):
    turn: int
    last: int


async def _speak(state: Turn, runtime: Runtime[RunContext]) -> dict[str, Any]:
    ctx, turn = runtime.context, state["turn"] + 1
    await ctx.begin_turn(turn)
    reply: Any = await ctx.call(SPEAKER, Given(turn=turn), turn=turn)
    return {"turn": turn, "last": reply.seq}


async def _act(state: Turn, runtime: Runtime[RunContext]) -> dict[str, Any]:
    ctx, turn = runtime.context, state["turn"]
    result = await ctx.use(ToolCall("calculate", {"expression": f"{turn} * 2"}), turn=turn)
    await ctx.record(StepDraft(StepKind.MEMORY, f"turn {turn}", {"of": result.seq}, turn=turn))
    return {}


async def _write(state: Turn, runtime: Runtime[RunContext]) -> dict[str, Any]:
    text = DraftSentence(text=f"{state['turn']} turns")
    draft = ReportDraft(title="Turns", sections=(DraftSection(heading="Turns", sentences=(text,)),))
    await runtime.context.deliver(draft, StopReason.ANSWERED)
    return {}


def turns_graph() -> StateGraph[Any, Any, Any, Any]:
    """Role call, tool call and memory record, once a turn."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Turn, context_schema=RunContext)
    graph.add_node("speak", _speak)
    graph.add_node("act", _act)
    graph.add_node("write", _write)
    graph.add_edge(START, "speak")
    graph.add_edge("speak", "act")
    graph.add_conditional_edges(
        "act", lambda s, runtime: "write" if s["turn"] >= runtime.context.run.budget.turns else "speak"
    )
    graph.add_edge("write", END)
    return graph


async def _wait(state: Turn, runtime: Runtime[RunContext]) -> dict[str, Any]:
    ctx, turn = runtime.context, state["turn"] + 1
    await ctx.begin_turn(turn)
    await ctx.call(SPEAKER, Given(turn=turn), turn=turn)
    return {"turn": turn}


def waits_graph() -> StateGraph[Any, Any, Any, Any]:
    """Ten calls in a row, each as slow as its engine."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Turn, context_schema=RunContext)
    graph.add_node("wait", _wait)
    graph.add_edge(START, "wait")
    graph.add_conditional_edges("wait", lambda s: "wait" if s["turn"] < 10 else END, ["wait", END])
    return graph


def bare_turns_graph(turns: int) -> StateGraph[Any, Any, Any, Any]:
    """The work of `turns_graph` without the platform: the same answers, nothing stored but the state."""

    async def speak(state: Turn) -> dict[str, Any]:
        turn = state["turn"] + 1
        answer = await asyncio.to_thread(_answer, Given(turn=turn))
        return {"turn": turn, "last": len(answer.text)}

    async def act(state: Turn) -> dict[str, Any]:
        return {"last": state["turn"] * 2}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Turn)
    graph.add_node("speak", speak)
    graph.add_node("act", act)
    graph.add_edge(START, "speak")
    graph.add_edge("speak", "act")
    graph.add_conditional_edges("act", lambda s: END if s["turn"] >= turns else "speak", ["speak", END])
    return graph


def _graph(name: str, build: Any, start: dict[str, Any], turn_key: str = "") -> Graph:
    roles = (SPEAKER,) if turn_key else ()
    return Graph(name, name, "Measured only.", "1", build, lambda _: dict(start), roles, turn_key=turn_key)


bench_noop = _graph("bench_noop", noop_graph, {"seen": 0})
bench_chain = _graph("bench_chain", chain_graph, {"seen": 0})
bench_turns = _graph("bench_turns", turns_graph, {"turn": 0, "last": 0}, "turn")
bench_waits = _graph("bench_waits", waits_graph, {"turn": 0, "last": 0}, "turn")

NAMES = ",".join(f"tests.bench.graphs:{name}" for name in ("bench_noop", "bench_chain", "bench_turns", "bench_waits"))
