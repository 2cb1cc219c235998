"""The graph of the agent: it answers, waits if it is told to, and concludes."""

# pyright: basic

import asyncio
import os
from pathlib import Path
from typing import Any

from langgraph.graph import StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from agent.model import PhraseModel
from agent.state import Finding, State

ENDING = "The end."


class Context(TypedDict, total=False):
    """What a caller may configure."""

    tone: str


async def answer(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask the model."""
    message = await PhraseModel().ainvoke(state.messages)
    return {"messages": [message], "findings": [Finding(str(message.text))]}


async def wait(state: State) -> dict[str, Any]:
    """Wait until the file that AGENT_GATE names exists. Without the variable, go on at once."""
    gate = os.environ.get("AGENT_GATE")
    while gate and not Path(gate).exists():  # noqa: ASYNC110, ASYNC240 - as people write it
        await asyncio.sleep(0.05)
    return {}


async def conclude(state: State) -> dict[str, Any]:
    """Ask the model for its conclusion."""
    message = await PhraseModel().ainvoke([("user", f"{state.findings[-1].text} {ENDING}")])
    return {"messages": [message]}


graph = (
    StateGraph(State, context_schema=Context)
    .add_node(answer)
    .add_node(wait)
    .add_node(conclude)
    .add_edge("__start__", "answer")
    .add_edge("answer", "wait")
    .add_edge("wait", "conclude")
    .compile(name="Agent")
)
