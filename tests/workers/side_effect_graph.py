"""A graph whose tool has an effect that must not happen twice: it writes a line to a file."""

import os
from pathlib import Path
from typing import Any

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from offing.core.tool import SideEffect
from offing.sdk import (
    EngineFailure,
    Graph,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    ToolArgs,
    ToolCall,
    ToolOutput,
    tool,
)
from tests.workers.graphs import SPEAKER, Ask, Count, untyped, write

GRAPHS = "tests.workers.side_effect_graph:shipping"

SHIPPED = "SHIPPED"
"""The variable of the environment that names the file."""


class Crate(ToolArgs, frozen=True):
    n: int


def _noted(n: int) -> None:
    with Path(os.environ[SHIPPED]).open("a") as file:
        file.write(f"{n}\n")


@tool(side_effect=SideEffect.AT_MOST_ONCE)
async def ship(args: Crate) -> ToolOutput:
    """Ships a crate."""
    _noted(args.n)
    return ToolOutput({"n": args.n}, str(args.n))


async def _turn(state: Count, runtime: Runtime[Any]) -> dict[str, Any]:
    """Says a word, ships a crate and remembers the word with what a person wrote; all of it in one node."""
    ctx: RunContext = runtime.context
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    if reason := ctx.stop_reason():
        return {"stop": reason}
    reply = await ctx.call_role(SPEAKER, Ask(turn=turn), turn=turn)
    assert not isinstance(reply, EngineFailure)
    await ctx.call_tool(ToolCall("ship", {"n": turn}), turn=turn)
    received = " ".join(str(message.payload["text"]) for message in await ctx.get_user_messages(state["last"]))
    word = f"{reply.output.word} {received}".strip()
    await ctx.append_steps(StepDraft(StepKind.MEMORY, word, {"word": word}, turn=turn))
    return {"turn": turn, "stop": StopReason.ANSWERED if turn >= 3 else ""}


def _next(state: Count) -> str:
    return "write" if state["stop"] else "turn"


def _build() -> Any:
    graph = untyped(Count, context_schema=RunContext)
    graph.add_node("turn", _turn)
    graph.add_node("write", write)
    graph.add_edge(START, "turn")
    graph.add_conditional_edges("turn", _next, ["write", "turn"])
    graph.add_edge("write", END)
    return graph


shipping = Graph(
    name="shipping",
    title="Shipping",
    description="Ships three crates, one a turn.",
    version="shipping-1",
    build=_build,
    initial_state=lambda _: {"turn": 0, "last": 0, "stop": ""},
    roles=(SPEAKER,),
    turn_counter="turn",
    tools=(ship,),
)
