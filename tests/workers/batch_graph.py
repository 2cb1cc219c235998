"""A graph that makes tool calls at the same time: its question says which, and its report says what came back."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from offing.core.tool import SideEffect
from offing.sdk import (
    DraftSection,
    DraftSentence,
    Graph,
    ReportDraft,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    ToolArgs,
    ToolCall,
    ToolFailedError,
    ToolOutput,
    tool,
)
from tests.workers.graphs import Count, untyped

GRAPHS = "tests.workers.batch_graph:batching"

FOLDER = "BATCHES"
"""The variable of the environment that names the folder of the log and of the files that let calls end."""


class Work(ToolArgs, frozen=True):
    n: int
    log: str
    waits: bool = False
    """It ends only once the file `LOG.N.go` exists."""
    fails: bool = False


async def _work(args: Work) -> ToolOutput:
    folder = Path(os.environ[FOLDER])
    with (folder / args.log).open("a") as file:
        file.write(f"{args.n}\n")
    while args.waits and not (folder / f"{args.log}.{args.n}.go").exists():  # noqa: ASYNC110  another process writes it
        await asyncio.sleep(0.02)
    if args.fails:
        raise ToolFailedError(f"Number {args.n} failed.")
    return ToolOutput({"n": args.n}, str(args.n))


@tool()
async def look(args: Work) -> ToolOutput:
    """Looks something up."""
    return await _work(args)


@tool(side_effect=SideEffect.AT_MOST_ONCE)
async def send(args: Work) -> ToolOutput:
    """Sends something, which must not happen twice."""
    return await _work(args)


def question_for(log: str, *calls: str, **more: Any) -> str:
    """The question that makes these calls: `look`, `send`, and, after a colon, `waits` or `fails`."""
    requests: list[dict[str, Any]] = []
    for n, call in enumerate(calls, 1):
        name, _, how = call.partition(":")
        requests.append({"tool": name, "args": {"n": n, "log": log, **({how: True} if how else {})}})
    return json.dumps({"calls": requests, **more})


def calls_of(question: str) -> Sequence[ToolCall]:
    return [ToolCall(one["tool"], one["args"]) for one in json.loads(question)["calls"]]


async def _turn(state: Count, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    results = await ctx.call_tools(calls_of(ctx.run.question), turn=1)
    text = ", ".join(f"{result.content.get('n', '-')} {result.status}" for result in results)
    await ctx.append_steps(StepDraft(StepKind.NOTE, text, {"text": text}, turn=1))
    return {"turn": 1, "last": results[0].seq, "stop": StopReason.ANSWERED}


async def _write(state: Count, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    (note,) = await ctx.last_steps(StepKind.NOTE, 1)
    section = DraftSection(heading="What came back", sentences=(DraftSentence(text=note.payload["text"]),))
    await ctx.submit_report(ReportDraft(title="Batch", sections=(section,)), StopReason.ANSWERED)
    return {}


def _build() -> Any:
    graph = untyped(Count, context_schema=RunContext)
    graph.add_node("turn", _turn)
    graph.add_node("write", _write)
    graph.add_edge(START, "turn")
    graph.add_edge("turn", "write")
    graph.add_edge("write", END)
    return graph


batching = Graph(
    name="batching",
    title="Batching",
    description="Makes tool calls at the same time.",
    version="batching-1",
    build=_build,
    initial_state=lambda _: {"turn": 0, "last": 0, "stop": ""},
    turn_counter="turn",
    roles=(),
    tools=(look, send),
)
