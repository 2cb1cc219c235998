"""Graphs that bring this process's secrets to every place where a run could leave them."""

import json
import os
from typing import Any, TypedDict

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from offing.sdk import (
    DraftSection,
    DraftSentence,
    Graph,
    ReportDraft,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    ToolCall,
)
from tests.workers.graphs import SPEAKER, Ask, untyped

GRAPHS = "tests.workers.leaking_graphs:leaking,tests.workers.leaking_graphs:failing"
NAMES = "CANARY_NAMES"
"""Variable with the names of those that hold secrets."""


class State(TypedDict):
    turn: int


def secrets() -> list[str]:
    return [os.environ[name] for name in os.environ[NAMES].split(",")]


async def leak(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    """In what is asked of a model, in arguments, addresses, records and a report."""
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    await ctx.call_role(SPEAKER, Ask(turn=1), turn=1)
    await ctx.call_tool(ToolCall("web_search", {"query": "what is echoed"}), turn=1)
    for secret in secrets():
        await ctx.call_tool(ToolCall("calculate", {"expression": f"1 + {secret}"}), turn=1)
        await ctx.call_tool(
            ToolCall("fetch_page", {"url": f"http://user:{secret}@public.example/?api_key={secret}"}), turn=1
        )
        await ctx.call_tool(ToolCall(secret, {secret: secret}), turn=1)
    message = " ".join(secrets())
    await ctx.append_steps(
        StepDraft(StepKind.NOTE, message, {"text": message, message: [message]}, detail=json.dumps(message))
    )
    sentence = DraftSentence(text=message)
    sections = (DraftSection(heading=message, sentences=(sentence,)),)
    await ctx.submit_report(
        ReportDraft(title=message, answer=message, sections=sections, limits=message), StopReason.ANSWERED
    )
    return {"turn": 1}


async def fail(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    raise RuntimeError(" ".join(secrets()))


def _graph(name: str, node: Any) -> Graph:
    def build() -> Any:
        graph = untyped(State, context_schema=RunContext)
        graph.add_node(name, node)
        graph.add_edge(START, name)
        graph.add_edge(name, END)
        return graph

    return Graph(
        name=name,
        title=name.capitalize(),
        description="Brings secrets everywhere.",
        version=f"{name}-1",
        build=build,
        initial_state=lambda _: {"turn": 0},
        roles=(SPEAKER,),
        turn_counter="turn",
    )


leaking = _graph("leaking", leak)
failing = _graph("failing", fail)
