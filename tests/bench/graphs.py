"""The measured graphs: one without work, one turn loop with calls, one that waits.

`offing_*` are the platform's form. The bare form of the loop does the same work without the platform.
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

untyped: Any = StateGraph
"""Type stubs limit the context to dataclasses; Offing's is a protocol."""


class SpeakerInput(BaseModel):
    turn: int


class SpeakerOutput(BaseModel):
    word: str
    text: str = ""


def _answer(inputs: SpeakerInput) -> SpeakerOutput:
    return SpeakerOutput(word=f"word {inputs.turn}", text=noise(inputs.turn))


def noise(turn: int) -> str:
    """Two kilobytes of words that differ from turn to turn."""
    return " ".join(f"{(turn * 7919 + n * 104729) % 999983:06d}" for n in range(280))


SPEAKER: Role[SpeakerInput, SpeakerOutput] = Role(
    "speaker",
    SpeakerInput,
    SpeakerOutput,
    lambda inputs: (Message("user", (str(inputs.turn),)),),
    lambda output: Headline(output.word),
    StepKind.PLAN,
    "plan",
    _answer,
)


class Seen(TypedDict):
    seen: int


async def _nothing(state: Seen) -> Seen:
    return {"seen": state["seen"] + 1}


async def _until_500(state: Seen) -> str:
    return "a" if state["seen"] < 500 else END


def noop_graph() -> Any:
    """Three nodes that count."""
    graph = untyped(Seen, context_schema=RunContext)
    for name in "abc":
        graph.add_node(name, _nothing)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "c")
    graph.add_edge("c", END)
    return graph


def chain_graph() -> Any:
    """One node that runs 500 times, for durable supersteps without other work."""
    graph = untyped(Seen, context_schema=RunContext)
    graph.add_node("a", _nothing)
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", _until_500, ["a", END])
    return graph


class Turn(TypedDict):
    turn: int
    last: int


async def _speak(state: Turn, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    reply: Any = await ctx.call_role(SPEAKER, SpeakerInput(turn=turn), turn=turn)
    return {"turn": turn, "last": reply.seq}


async def _act(state: Turn, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    turn = state["turn"]
    result = await ctx.call_tool(ToolCall("calculate", {"expression": f"{turn} * 2"}), turn=turn)
    await ctx.append_steps(StepDraft(StepKind.MEMORY, f"turn {turn}", {"of": result.seq}, turn=turn))
    return {}


async def _write(state: Turn, runtime: Runtime[Any]) -> dict[str, Any]:
    text = DraftSentence(text=f"{state['turn']} turns")
    draft = ReportDraft(title="Turns", sections=(DraftSection(heading="Turns", sentences=(text,)),))
    await runtime.context.submit_report(draft, StopReason.ANSWERED)
    return {}


async def _until_budget(state: Turn, runtime: Runtime[Any]) -> str:
    return "write" if state["turn"] >= runtime.context.run.budget.max_turns else "speak"


def turns_graph() -> Any:
    """Role call, tool call and memory record, once per turn."""
    graph = untyped(Turn, context_schema=RunContext)
    graph.add_node("speak", _speak)
    graph.add_node("act", _act)
    graph.add_node("write", _write)
    graph.add_edge(START, "speak")
    graph.add_edge("speak", "act")
    graph.add_conditional_edges("act", _until_budget)
    graph.add_edge("write", END)
    return graph


async def _wait(state: Turn, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    await ctx.call_role(SPEAKER, SpeakerInput(turn=turn), turn=turn)
    return {"turn": turn}


def _until_ten(state: Turn) -> str:
    return "wait" if state["turn"] < 10 else END


def waits_graph() -> Any:
    """Ten calls in a row, each as slow as its engine."""
    graph = untyped(Turn, context_schema=RunContext)
    graph.add_node("wait", _wait)
    graph.add_edge(START, "wait")
    graph.add_conditional_edges("wait", _until_ten, ["wait", END])
    return graph


def bare_turns_graph(turns: int) -> Any:
    """Do the work of `turns_graph` without the platform: the same answers, with only the state stored."""

    async def speak(state: Turn) -> dict[str, Any]:
        turn = state["turn"] + 1
        answer = await asyncio.to_thread(_answer, SpeakerInput(turn=turn))
        return {"turn": turn, "last": len(answer.text)}

    async def act(state: Turn) -> dict[str, Any]:
        return {"last": state["turn"] * 2}

    def until(state: Turn) -> str:
        return END if state["turn"] >= turns else "speak"

    graph = untyped(Turn)
    graph.add_node("speak", speak)
    graph.add_node("act", act)
    graph.add_edge(START, "speak")
    graph.add_edge("speak", "act")
    graph.add_conditional_edges("act", until, ["speak", END])
    return graph


def _graph(name: str, build: Any, start: dict[str, Any], turn_key: str = "") -> Graph:
    roles = (SPEAKER,) if turn_key else ()
    return Graph(name, name, "Measured only.", "1", build, lambda _: dict(start), roles, turn_counter=turn_key)


bench_noop = _graph("bench_noop", noop_graph, {"seen": 0})
bench_chain = _graph("bench_chain", chain_graph, {"seen": 0})
bench_turns = _graph("bench_turns", turns_graph, {"turn": 0, "last": 0}, "turn")
bench_waits = _graph("bench_waits", waits_graph, {"turn": 0, "last": 0}, "turn")

NAMES = ",".join(
    (
        *(f"tests.bench.graphs:{name}" for name in ("bench_noop", "bench_chain", "bench_turns", "bench_waits")),
        *(f"tests.bench.sdk:{name}" for name in ("asking", "silent")),
        "tests.bench.history:conversing",
        "tests.bench.counting:counting",
    )
)
